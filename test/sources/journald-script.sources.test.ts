import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { examplePath } from './examples.ts'
import { isInstalled } from './programs.ts'
import { type ProgramRun, runProgram } from './run-program.ts'

const RUN_DEADLINE_MS = 20_000

/** A journal with two records. The last one has the cursor 2. */
const JOURNALCTL = `#!/bin/sh
case "$*" in *after-cursor*) exit 0 ;; esac
for i in 1 2; do
  printf '{"__CURSOR":"%s","__REALTIME_TIMESTAMP":"1790000000000000","MESSAGE":"m"}\\n' "$i"
done
`

describe.skipIf(!isInstalled('jq'))('the script for the journal, if the PATH has jq', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'journald-script-'))
    await addProgram('journalctl', JOURNALCTL)
  })
  afterEach(() => rm(folder, { recursive: true }))

  async function addProgram(name: string, text: string): Promise<void> {
    await writeFile(join(folder, name), text)
    await chmod(join(folder, name), 0o755)
  }

  function forward(): Promise<ProgramRun> {
    const environment = { PATH: [folder, process.env['PATH']].join(delimiter) }
    return runProgram([examplePath('journald/forward.sh'), folder], environment, {
      deadlineMs: RUN_DEADLINE_MS,
    })
  }
  const cursor = (): Promise<string> => readFile(join(folder, 'cursor'), 'utf8').catch(() => 'none')

  it.each([
    ['all were accepted', '2 of 2 lines sent, 2 accepted, 0 rejected; 0.1 s, 20 lines/s.', 0],
    ['some were rejected', '2 of 2 lines sent, 1 accepted, 1 rejected; 0.1 s, 20 lines/s.', 1],
    ['all were rejected', '2 of 2 entries sent, 0 accepted, 2 rejected; 0.1 s, 20 entries/s.', 1],
  ])('goes on after two records: %s', async (_name, summary, exitCode) => {
    await addProgram('sluice', `#!/bin/sh\necho '${summary}'\nexit ${exitCode}\n`)
    expect(await forward()).toMatchObject({ code: 0 })
    expect(await cursor()).toBe('2\n')
  })

  it.each([
    [
      'some have no answer',
      'Stopped at 50 % of the input (1 of 2 bytes): 1 of 2 lines sent, 1 accepted, 0 rejected, 1 not sent or without a response; 0.1 s, 1 lines/s.',
    ],
    ['nothing is known', ''],
  ])('stops at two records, and begins with them in the next run: %s', async (_name, summary) => {
    await addProgram('sluice', `#!/bin/sh\necho '${summary}'\nexit 1\n`)
    expect(await forward()).toMatchObject({ code: 1 })
    expect(await cursor()).toBe('none')
  })
})
