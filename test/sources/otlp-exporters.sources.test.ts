import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Losses, LosingProxy } from './losing-proxy.ts'
import { SourcesInstallation } from './stored-entries.ts'

const RECORDS = 600
/** Not all exporters send again if their connection is closed. */
const ONCE: Losses = { every: Infinity, instead: 503 }
const folder = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
/** From tools/otel-examples.sh: a virtual environment, and a compiled program. */
const prepared = folder('../../node_modules/.cache/otel-examples')
const python = `${prepared}/python/bin/python`
const go = `${prepared}/go/exporter`

const run = promisify(execFile)
const RUN_MS = 30_000

let sources: SourcesInstallation

beforeAll(async () => {
  sources = await SourcesInstallation.start()
})

afterAll(async () => {
  await sources?.stop()
})

/** Runs a program that emits records with an exporter. The exporter reads its settings from the environment. */
async function emit([file, ...given]: Exporter['program'], url: string, service: string): Promise<string> {
  const { stdout, stderr } = await run(file, [...given, service, String(RECORDS)], {
    timeout: RUN_MS,
    env: {
      PATH: process.env['PATH'],
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${sources.installation.apiKey},sluice-idempotency=body`,
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    },
  })
  return stdout + stderr
}

interface Exporter {
  readonly language: string
  readonly program: readonly [string, ...string[]]
  /** Parts of the metadata of the record with the number 7. */
  readonly metadata: object
}

const exporters: readonly Exporter[] = [
  {
    language: 'Python',
    program: [python, folder('python/emit.py')],
    metadata: { attributes: { cart: 7, total: 9.99 }, scope: { name: 'checkout' } },
  },
  {
    language: 'Go',
    program: [go],
    metadata: {
      attributes: { cart: 7, total: 9.99, raw: 'AQI=' },
      severity_number: 10,
      time_unix_nano: '1795132800130456789',
    },
  },
]

describe.each(exporters)('the exporter of $language', ({ language, program, metadata }) => {
  const service = `otlp-${language.toLowerCase()}`
  const isPrepared = existsSync(program[0])

  it.skipIf(!isPrepared)('has its records stored with all parts', async () => {
    expect(await emit(program, sources.installation.apiUrl, service)).toBe('')
    const rows = await sources.entriesOf(service, RECORDS)
    expect(rows).toHaveLength(RECORDS)
    const row = rows.find(({ message }) => message.endsWith(' 7 é'))
    expect(row?.metadata).toMatchObject(metadata)
  })

  it.skipIf(!isPrepared)('has its records stored once if an answer is lost', async () => {
    const proxy = await LosingProxy.open(sources.installation.apiUrl, ONCE)
    try {
      await emit(program, proxy.url, `${service}-lost`)
    } finally {
      await proxy.close()
    }
    expect(proxy.answers.toSorted()).toEqual(['200', '200', '200', '200 replayed'])
    expect(await sources.entriesOf(`${service}-lost`, RECORDS)).toHaveLength(RECORDS)
  })
})

it.skipIf(!existsSync(python))('the stack of an exception in Python becomes a column', async () => {
  const rows = await sources.entriesOf('otlp-python', RECORDS)
  const row = rows.find(({ message }) => message === 'failed')
  expect(row).toMatchObject({
    level: 'error',
    stack: expect.stringContaining('ValueError: no funds') as unknown,
  })
})
