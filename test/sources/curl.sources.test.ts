import { pause } from '@sluice/harness'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { examplePath } from './examples.ts'
import { LosingProxy } from './losing-proxy.ts'
import { isInstalled } from './programs.ts'
import { runProgram, startProgram } from './run-program.ts'
import { SourcesInstallation } from './stored-entries.ts'

const RUN_DEADLINE_MS = 50_000
/** Longer than curl's first wait. */
const DOWN_MS = 1_500

const program = examplePath('curl/send.sh')
describe.skipIf(!isInstalled('curl'))('the example with curl, if the PATH has it', () => {
  let sources: SourcesInstallation

  beforeAll(async () => {
    sources = await SourcesInstallation.start()
  })

  afterAll(async () => {
    await sources?.stop()
  })

  const environment = (apiKey = sources.installation.apiKey): Record<string, string> => ({
    SLUICE_API_URL: sources.installation.apiUrl,
    SLUICE_API_KEY: apiKey,
  })

  it('sends an entry, with any characters, and once although the API was down', async () => {
    await sources.killApi()
    const message = 'Backup "full" \\ of ä\nfinished'
    const run = startProgram([program, message], environment(), { deadlineMs: RUN_DEADLINE_MS })
    await pause(DOWN_MS)
    await sources.startApi()
    expect(await run.ended).toMatchObject({ code: 0 })
    const entries = await sources.entriesOf('backup', 1)
    expect(entries).toHaveLength(1)
    expect(entries[0]).toMatchObject({ level: 'info', message: 'Backup "full" \\ of ä finished' })
  })

  it('sends an entry once although the first answer is lost', async () => {
    const proxy = await LosingProxy.open(sources.installation.apiUrl, { every: 2, instead: 'close' })
    try {
      const run = await runProgram(
        [program, 'lost answer'],
        { ...environment(), SLUICE_API_URL: proxy.url },
        { deadlineMs: RUN_DEADLINE_MS },
      )
      expect(run).toMatchObject({ code: 0 })
    } finally {
      await proxy.close()
    }
    expect(proxy.lost).toBe(1)
    const entries = await sources.entriesOf('backup', 2)
    expect(entries.map(({ message }) => message).filter((message) => message === 'lost answer')).toHaveLength(
      1,
    )
  })

  it('fails, and shows the answer, if the key is wrong', async () => {
    const { code, output } = await runProgram([program, 'x'], environment('slk_wrong'), {
      deadlineMs: RUN_DEADLINE_MS,
    })
    expect(code).not.toBe(0)
    expect(output).toContain('"code":"unauthorized"')
  })
})
