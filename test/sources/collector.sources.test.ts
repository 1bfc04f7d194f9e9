import { beforeAll, describe, expect, it } from 'vitest'
import { type Collector, COLLECTOR, startCollector } from './collector.ts'
import { isInstalled } from './programs.ts'
import { numbered, Sources } from './sources.ts'

const RECORDS = 1_000
/** Longer than Sluice accepts. */
const LONG_MESSAGE = 'x'.repeat(70_000)

describe.skipIf(!isInstalled(COLLECTOR))('a Collector with its example, if it is on the PATH', () => {
  const sources = Sources.use()
  let collector: Collector

  beforeAll(async () => {
    const { supervisor, apiUrl, apiKey } = sources.installation
    collector = await startCollector(supervisor, {
      example: 'otel-collector/config.yaml',
      replacements: { 'https://logs.example.com': apiUrl },
      environment: { SLUICE_API_KEY: apiKey },
    })
  })

  /** Sends records to the Collector. @returns its status */
  async function send(service: string, messages: readonly string[]): Promise<number> {
    const logRecords = messages.map((stringValue) => ({ severityNumber: 13, body: { stringValue } }))
    const attributes = [{ key: 'service.name', value: { stringValue: service } }]
    const response = await fetch(`${collector.url}/v1/logs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ resourceLogs: [{ resource: { attributes }, scopeLogs: [{ logRecords }] }] }),
    })
    await response.body?.cancel()
    return response.status
  }

  it('keeps records on disk over its own crash while the API is down, and sends each of them', async () => {
    await sources.killApi()
    expect(await send('collector-crash', numbered(0, RECORDS))).toBe(200)
    await collector.process.stop({ signal: 'SIGKILL' })
    await collector.process.start()
    expect(await send('collector-crash', numbered(RECORDS, RECORDS))).toBe(200)
    await sources.startApi()
    const entries = await sources.entriesOf('collector-crash', 2 * RECORDS)
    expect(entries.length).toBeGreaterThanOrEqual(2 * RECORDS)
  })

  it('sends the other records of a request in which Sluice rejects one', async () => {
    const service = 'collector-rejected'
    expect(await send(service, ['before', LONG_MESSAGE, 'after'])).toBe(200)
    const entries = await sources.entriesOf(service, 2)
    expect(entries.map(({ level, message }) => ({ level, message }))).toEqual([
      { level: 'warn', message: 'after' },
      { level: 'warn', message: 'before' },
    ])
  })
})
