import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ForgetfulProxy } from './forgetful-proxy.ts'
import { storedLogs } from './stored-logs.ts'

const RECORDS = 600
const folder = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const cache = folder('../../node_modules/.cache/sources')
/** A virtual environment, and a compiled program. */
const python = `${cache}/python/bin/python3`
const go = `${cache}/go-exporter`

const run = promisify(execFile)
const RUN_MS = 30_000
const INSTALL_MS = 240_000

let installation: Installation

beforeAll(async () => {
  installation = await startTestInstallation()
})

afterAll(async () => {
  await installation?.stop()
})

/** Runs a program that emits records with an exporter. The exporter reads its settings from the environment. */
async function emit(program: readonly string[], url: string, service: string): Promise<string> {
  const [file = '', ...given] = program
  const { stdout, stderr } = await run(file, [...given, service, String(RECORDS)], {
    timeout: RUN_MS,
    env: {
      PATH: process.env['PATH'],
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${installation.apiKey},sluice-idempotency=body`,
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    },
  })
  return stdout + stderr
}

interface Exporter {
  readonly language: string
  readonly install: () => Promise<unknown>
  readonly program: readonly string[]
  /** Parts of the metadata of the record with the number 7. */
  readonly metadata: object
}

const exporters: readonly Exporter[] = [
  {
    language: 'Python',
    install: async () => {
      await run('python3', ['-m', 'venv', `${cache}/python`], { timeout: INSTALL_MS })
      await run(python, ['-m', 'pip', 'install', '--quiet', '-r', folder('python/requirements.txt')], {
        timeout: INSTALL_MS,
      })
    },
    program: [python, folder('python/emit.py')],
    metadata: { attributes: { cart: 7, total: 9.99 }, scope: { name: 'checkout' } },
  },
  {
    language: 'Go',
    install: () =>
      run('go', ['build', '-mod=readonly', '-o', go, '.'], { cwd: folder('go'), timeout: INSTALL_MS }),
    program: [go],
    metadata: {
      attributes: { cart: 7, total: 9.99, raw: 'AQI=' },
      severity_number: 10,
      time_unix_nano: '1795132800130456789',
    },
  },
]

describe.each(exporters)('the exporter of $language', ({ language, install, program, metadata }) => {
  const service = `otlp-${language.toLowerCase()}`

  beforeAll(install)

  it('has its records stored with all parts', async () => {
    expect(await emit(program, installation.apiUrl, service)).toBe('')
    const rows = await storedLogs(installation, service, RECORDS)
    expect(rows).toHaveLength(RECORDS)
    const row = rows.find(({ message }) => message.endsWith(' 7 é'))
    expect(JSON.parse(row?.metadata_text ?? '')).toMatchObject(metadata)
  })

  it('has its records stored once if an answer is lost', async () => {
    const proxy = await ForgetfulProxy.start(installation.apiUrl)
    try {
      await emit(program, proxy.url, `${service}-lost`)
    } finally {
      await proxy.stop()
    }
    expect(proxy.answers.toSorted()).toEqual(['200', '200', '200', '200 replayed'])
    expect(await storedLogs(installation, `${service}-lost`, RECORDS)).toHaveLength(RECORDS)
  })
})

it('the stack of an exception in Python becomes a column', async () => {
  const rows = await storedLogs(installation, 'otlp-python', RECORDS)
  const row = rows.find(({ message }) => message === 'failed')
  expect(row).toMatchObject({
    level: 'error',
    stack: expect.stringContaining('ValueError: no funds') as unknown,
  })
})
