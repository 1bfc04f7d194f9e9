// The watchdog's process: `watchdog-main.ts DATA_DIR DISCARD_DATA`. When its standard input ends, the process that
// supervises is gone. If it has not said farewell, what it started is ended.
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { removeContainer } from './docker.ts'
import { endTagged } from './process-tags.ts'
import { FAREWELL } from './watchdog.ts'

/** A process that was being started when the supervisor died carries its tag only after a moment. */
const LATE_START_MS = 250

const [dataDir, discardData] = process.argv.slice(2)
if (dataDir === undefined) throw new Error('usage: watchdog-main.ts DATA_DIR DISCARD_DATA')

let farewell = ''
process.stdin.setEncoding('utf8').on('data', (text: string) => {
  farewell += text
})
process.stdin.on('error', () => undefined)
await once(process.stdin, 'close')

if (farewell !== FAREWELL) {
  let ended = await endTagged(dataDir)
  await delay(LATE_START_MS)
  ended += await endTagged(dataDir)
  console.log(`${new Date().toISOString()} the supervisor is gone: ended ${ended} processes`)
}
await removeContainer(dataDir)
if (discardData === 'true') rmSync(dataDir, { recursive: true, force: true })
