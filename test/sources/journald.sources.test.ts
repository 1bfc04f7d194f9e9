import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { examplePath } from './examples.ts'
import { isInstalled } from './programs.ts'
import { type ProgramRun, runProgram } from './run-program.ts'
import { SourcesInstallation } from './stored-entries.ts'

/** More than two rounds of the example. */
const RECORDS = 25_000
const RUN_DEADLINE_MS = 50_000
const MICROSECONDS_OF_2026 = 1_790_000_000_000_000

const isReady = ['journalctl', 'systemd-journal-remote', 'jq'].every((program) => isInstalled(program))
const command = fileURLToPath(new URL('../../sluice', import.meta.url))

describe.skipIf(!isReady)('the example with journald, if the PATH has its programs and jq', () => {
  let sources: SourcesInstallation
  let folder: string

  beforeAll(async () => {
    sources = await SourcesInstallation.start()
    folder = await mkdtemp(join(tmpdir(), 'sluice-journal-'))
    // The command `sluice` of the example.
    await writeFile(join(folder, 'sluice'), `#!/bin/sh\nexec '${command}' "$@"\n`)
    await chmod(join(folder, 'sluice'), 0o755)
  })

  afterAll(async () => {
    await sources?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  /** Adds records to the journal. */
  async function write(first: number, messages: readonly (string | Buffer)[]): Promise<void> {
    const file = join(folder, `export-${first}`)
    const records = messages.map((message, index) => exportRecord(first + index, Buffer.from(message)))
    await writeFile(file, Buffer.concat(records))
    const run = ['systemd-journal-remote', '-o', join(folder, `part-${first}.journal`), file] as const
    expect(await runProgram(run, {}, { deadlineMs: RUN_DEADLINE_MS })).toMatchObject({ code: 0 })
  }

  function forward(state: string): Promise<ProgramRun> {
    const environment = {
      PATH: [folder, process.env['PATH']].join(delimiter),
      SLUICE_API_URL: sources.installation.apiUrl,
      SLUICE_API_KEY: sources.installation.apiKey,
    }
    const run = [examplePath('journald/forward.sh'), state, '--directory', folder] as const
    return runProgram(run, environment, { deadlineMs: RUN_DEADLINE_MS })
  }

  it('sends each record once over several runs, with priority, identifier, unit and host', async () => {
    const state = await mkdtemp(join(folder, 'state-'))
    await write(
      0,
      Array.from({ length: RECORDS }, (_, number) => `number ${number}`),
    )
    expect(await forward(state)).toMatchObject({ code: 0 })
    await write(RECORDS, [Buffer.from('bytes \xff', 'latin1'), 'x'.repeat(70_000), 'two\nlines'])
    expect(await forward(state)).toMatchObject({ code: 0 })
    expect(await forward(state)).toMatchObject({ code: 0 })

    const entries = await sources.entriesOf('nginx', RECORDS + 3)
    expect(entries).toHaveLength(RECORDS + 3)
    expect(entries[3]).toMatchObject({
      level: 'error',
      message: 'number 3',
      timestamp: '2026-09-21 14:13:20.000003',
      source: 'server',
      metadata: { host: 'web-1', unit: 'nginx.service', pid: '42' },
    })
    expect(entries.slice(0, 8).map(({ level }) => level)).toEqual([
      'error',
      'error',
      'error',
      'error',
      'warn',
      'info',
      'info',
      'debug',
    ])
    expect(entries.slice(RECORDS).map(({ message }) => message)).toEqual([
      'bytes \ufffd',
      'x'.repeat(65_536),
      'two\nlines',
    ])
  })
})

/** A record in the export format of the journal. */
function exportRecord(number: number, message: Buffer): Buffer {
  const microseconds = MICROSECONDS_OF_2026 + number
  const size = Buffer.alloc(8)
  size.writeBigUInt64LE(BigInt(message.length))
  const fields = [
    `__CURSOR=s=1;i=${number};b=1;m=${number};t=${microseconds};x=1`,
    `__REALTIME_TIMESTAMP=${microseconds}`,
    `__MONOTONIC_TIMESTAMP=${number + 1}`,
    '_BOOT_ID=0123456789abcdef0123456789abcdef',
    `PRIORITY=${number % 8}`,
    'SYSLOG_IDENTIFIER=nginx',
    '_HOSTNAME=web-1',
    '_PID=42',
    '_SYSTEMD_UNIT=nginx.service',
    'MESSAGE',
  ]
  return Buffer.concat([Buffer.from(`${fields.join('\n')}\n`), size, message, Buffer.from('\n\n')])
}
