// `npm run lab -- libraries`: sends messages with the libraries of the pages while the API is killed, then counts what is stored.
import { connectClickHouse } from '@sluice/clickhouse'
import { pause } from '@sluice/harness'
import { CommandLine } from '@sluice/harness/command-line'
import { awaitInserts, drainQueue } from '@sluice/harness/drain'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { queueNames } from '@sluice/queue'
import { clients, inputLine, isPrepared, isUnchanged, messageOf, runClient } from '../sources/clients.ts'

const commandLine = new CommandLine(`npm run lab -- libraries [options]

  --rate N         records per second of each library; default 100
  --kills N        of the API, which then starts after 3 s; default 3
  --seconds N      before each kill, and after the last one; default 7
  --only TEXT      the libraries whose names contain it
  --without-key    sends requests without Sluice-Idempotency: body

Needs what \`npm run test:release -- sources\` installs. Libraries that are not installed are left out.
`)
const values = commandLine.read({
  rate: { type: 'string', default: '100' },
  kills: { type: 'string', default: '3' },
  seconds: { type: 'string', default: '7' },
  only: { type: 'string', default: '' },
  'without-key': { type: 'boolean', default: false },
})
const rate = commandLine.positive('rate', values.rate)
const kills = commandLine.nonNegativeInteger('kills', values.kills)
const upMs = commandLine.positive('seconds', values.seconds) * 1_000

const DOWN_MS = 3_000
const LINES_PER_WRITE = 10
const DRAIN_DEADLINE_MS = 60_000
/** For the programs to start. */
const START_MS = 5_000
const QUERY_DEADLINE_MS = 30_000

const chosen = clients.filter((client) => client.name.includes(values.only) && isPrepared(client))
const over = new AbortController()
const sent = new Map<string, number>()
const log = (line: string): void => void process.stdout.write(`${line}\n`)
const serviceOf = (index: number): string => `client-${index}`
const installation = await startTestInstallation()
const { apiUrl: url, apiKey: key, redisUrl, prefix, processes } = installation
const clickhouse = connectClickHouse(installation.clickhouse, {
  requestTimeoutMs: QUERY_DEADLINE_MS,
  connectionsMax: 1,
})
try {
  const running = chosen.map((client, index) => {
    const service = serviceOf(index)
    const options = { url, key, service, isIdempotent: !values['without-key'] }
    return runClient(client, options, linesOf(service))
  })
  await pause(START_MS + upMs)
  for (let kill = 0; kill < kills; kill += 1) {
    const killedAtMs = performance.now()
    await processes.api.stop({ signal: 'SIGKILL' })
    await pause(DOWN_MS)
    await processes.api.start()
    log(`The API was away for ${((performance.now() - killedAtMs) / 1_000).toFixed(1)} s`)
    await pause(upMs)
  }
  over.abort()
  const runs = await Promise.all(running)
  await drainQueue(redisUrl, queueNames(prefix), DRAIN_DEADLINE_MS)
  await awaitInserts(installation.clickhouse)
  const stored = await storedMessages()
  log('| Library | Sent | Stored | Lost | Doubled | Changed | Exit |')
  for (const [index, { name }] of chosen.entries()) {
    const found = stored.get(serviceOf(index)) ?? []
    const different = new Set(found.map(([number]) => number)).size
    const changed = found.filter(([number, text]) => !isUnchanged(text, messageOf(serviceOf(index), number)))
    const records = sent.get(serviceOf(index)) ?? 0
    const counts = [records, different, records - different, found.length - different, changed.length]
    log(`| ${name} | ${counts.join(' | ')} | ${runs[index]?.code ?? 'killed'} |`)
  }
} finally {
  await clickhouse.close()
  await installation.stop({ force: true })
}
process.exit()

async function* linesOf(service: string): AsyncGenerator<string> {
  await pause(START_MS)
  const startedAtMs = performance.now()
  for (let first = 0; !over.signal.aborted; first += LINES_PER_WRITE) {
    await pause(startedAtMs + (first / rate) * 1_000 - performance.now())
    const numbers = Array.from({ length: LINES_PER_WRITE }, (_, index) => first + index)
    sent.set(service, first + LINES_PER_WRITE)
    yield numbers.map((number) => inputLine(service, number)).join('')
  }
}

/** @returns the numbers and messages that are stored, by the service in the message */
async function storedMessages(): Promise<Map<string, (readonly [number: number, message: string])[]>> {
  const query = "SELECT message FROM logs WHERE match(message, 'client-[0-9]+<[0-9]+>')"
  const result = await clickhouse.query({ query, format: 'JSONEachRow' })
  const rows = await result.json<{ message: string }>()
  const parsed = rows.map(({ message }) => {
    const [, service = '', number = ''] = /(client-\d+)<(\d+)>/.exec(message) ?? []
    return [service, [Number(number), message]] as const
  })
  return new Map(
    [...Map.groupBy(parsed, ([service]) => service)].map(([service, found]) => [
      service,
      found.map(([, stored]) => stored),
    ]),
  )
}
