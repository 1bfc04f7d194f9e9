import { pause } from '@sluice/harness'
import { describe, expect, it } from 'vitest'
import { LosingProxy } from './losing-proxy.ts'
import { examplePath, isInstalled, runProgram, startProgram } from './programs.ts'
import { Sources } from './sources.ts'

/** Longer than curl's first wait. */
const DOWN_MS = 1_500
/** What the example sends. */
const SERVICE = 'backup'

const program = examplePath('curl/send.sh')
describe.skipIf(!isInstalled('curl'))('the example with curl, if the PATH has it', () => {
  const sources = Sources.use()

  it('sends an entry, with any characters, and once although the API was down', async () => {
    await sources.killApi()
    const run = startProgram([program, 'Backup "full" \\ of ä\nfinished'], sources.environment(SERVICE))
    await pause(DOWN_MS)
    await sources.startApi()
    expect(await run.ended).toMatchObject({ code: 0 })
    expect(await sources.entriesOf(SERVICE, 1)).toMatchObject([
      { level: 'info', message: 'Backup "full" \\ of ä finished' },
    ])
  })

  it('sends an entry once although the first response is lost', async () => {
    await using proxy = await LosingProxy.open(sources.installation.apiUrl, 2)
    const environment = { ...sources.environment(SERVICE), SLUICE_API_URL: proxy.url }
    expect(await runProgram([program, 'lost'], environment)).toMatchObject({ code: 0 })
    expect(proxy.lost).toBe(1)
    const entries = await sources.entriesOf(SERVICE, 2)
    expect(entries.filter(({ message }) => message === 'lost')).toHaveLength(1)
  })
})
