import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Collector, COLLECTOR, startCollector } from './collector.ts'
import { isInstalled } from './programs.ts'
import { SourcesInstallation } from './stored-entries.ts'

const RECORDS = 1_000
/** Longer than Sluice accepts. */
const LONG_MESSAGE = 'x'.repeat(70_000)

const numbered = (first: number): string[] =>
  Array.from({ length: RECORDS }, (_, index) => `number ${first + index}`)

describe.skipIf(!isInstalled(COLLECTOR))('a Collector with its example, if it is on the PATH', () => {
  let sources: SourcesInstallation
  let collector: Collector

  beforeAll(async () => {
    sources = await SourcesInstallation.start()
    collector = await startCollector(sources.installation.supervisor, {
      example: 'otel-collector/config.yaml',
      replacements: { 'https://logs.example.com': sources.installation.apiUrl },
      environment: { SLUICE_API_KEY: sources.installation.apiKey },
    })
  })

  afterAll(async () => {
    await sources?.stop()
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
    const service = 'collector-crash'
    await sources.killApi()
    expect(await send(service, numbered(0))).toBe(200)
    await collector.process.stop({ signal: 'SIGKILL' })
    await collector.process.start()
    expect(await send(service, numbered(RECORDS))).toBe(200)
    await sources.startApi()
    const { distinct } = await sources.countsOf(service, 2 * RECORDS)
    expect(distinct).toBe(2 * RECORDS)
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
