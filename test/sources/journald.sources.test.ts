import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { examplePath, isInstalled, type ProgramRun, runProgram } from './programs.ts'
import { numbered, Sources } from './sources.ts'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-journal-'))
})

afterEach(() => rm(folder, { recursive: true, force: true }))

/** Adds a script to the PATH of `forward`. */
async function addProgram(name: string, script: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`)
  await chmod(join(folder, name), 0o755)
}

/** Runs the example. The state is in the folder. */
function forward(environment: Readonly<Record<string, string>> = {}, ...args: string[]): Promise<ProgramRun> {
  const PATH = [folder, process.env['PATH']].join(delimiter)
  return runProgram([examplePath('journald/forward.sh'), folder, ...args], { PATH, ...environment })
}

/** A journal with two records. The last one has the cursor 2. */
const JOURNALCTL = `case "$*" in *after-cursor*) exit 0 ;; esac
for i in 1 2; do
  printf '{"__CURSOR":"%s","__REALTIME_TIMESTAMP":"1790000000000000","MESSAGE":"m"}\\n' "$i"
done`

describe.skipIf(!isInstalled('jq'))('the script for the journal, if the PATH has jq', () => {
  it.each([
    ['all were accepted', '2 of 2 lines sent, 2 accepted, 0 rejected; 0.1 s, 20 lines/s.', 0],
    ['some were rejected', '2 of 2 lines sent, 1 accepted, 1 rejected; 0.1 s, 20 lines/s.', 1],
    ['all were rejected', '2 of 2 entries sent, 0 accepted, 2 rejected; 0.1 s, 20 entries/s.', 1],
    [
      'some have no response, so the next run begins with them',
      'Stopped at 50 % of the input (1 of 2 bytes): 1 of 2 lines sent, 1 accepted, 0 rejected, 1 not sent or without a response; 0.1 s, 1 lines/s.',
      1,
      { code: 1, cursor: 'none' },
    ],
    ['nothing is known, so the next run begins with them', '', 1, { code: 1, cursor: 'none' }],
  ])(
    'goes on after two records, or stops: %s',
    async (_name, summary, exitCode, expected = { code: 0, cursor: '2\n' }) => {
      await addProgram('journalctl', JOURNALCTL)
      await addProgram('sluice', `echo '${summary}'\nexit ${exitCode}`)
      const { code } = await forward()
      const cursor = await readFile(join(folder, 'cursor'), 'utf8').catch(() => 'none')
      expect({ code, cursor }).toEqual(expected)
    },
  )
})

/** More than two rounds of the example. */
const RECORDS = 25_000
const MICROSECONDS_OF_2026 = 1_790_000_000_000_000

const isReady = ['journalctl', 'systemd-journal-remote', 'jq'].every((program) => isInstalled(program))

/** Adds records to the journal. */
async function write(first: number, messages: readonly (string | Buffer)[]): Promise<void> {
  const file = join(folder, `export-${first}`)
  const records = messages.map((message, index) => exportRecord(first + index, Buffer.from(message)))
  await writeFile(file, Buffer.concat(records))
  const part = join(folder, `part-${first}.journal`)
  expect(await runProgram(['systemd-journal-remote', '-o', part, file])).toMatchObject({ code: 0 })
}

describe.skipIf(!isReady)('the example with journald, if the PATH has its programs and jq', () => {
  const sources = Sources.use()

  it('sends each record once over several runs, with priority, identifier, unit and host', async () => {
    const command = fileURLToPath(new URL('../../sluice', import.meta.url))
    await addProgram('sluice', `exec '${command}' "$@"`)
    const environment = sources.environment('nginx')
    await write(0, numbered(0, RECORDS))
    expect(await forward(environment, '--directory', folder)).toMatchObject({ code: 0 })
    await write(RECORDS, [Buffer.from('bytes \xff', 'latin1'), 'x'.repeat(70_000), 'two\nlines'])
    for (let run = 0; run < 2; run += 1)
      expect(await forward(environment, '--directory', folder)).toMatchObject({ code: 0 })

    const entries = await sources.entriesOf('nginx', RECORDS + 3)
    expect(entries).toHaveLength(RECORDS + 3)
    expect(entries[3]).toMatchObject({
      level: 'error',
      message: 'number 3',
      timestamp: '2026-09-21 14:13:20.000003',
      source: 'server',
      metadata: { host: 'web-1', unit: 'nginx.service', pid: '42' },
    })
    const levels = entries.slice(0, 8).map(({ level }) => level)
    expect(levels.join(' ')).toBe('error error error error warn info info debug')
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
