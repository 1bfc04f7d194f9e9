// `npm run lab -- rejected`: what one worker stores while ClickHouse rejects some of the rows, and what another project notices.
import { deadLettersTable, logsTable } from '@sluice/clickhouse'
import { pause } from '@sluice/harness'
import { command, select } from '@sluice/harness/clickhouse'
import { CommandLine } from '@sluice/harness/command-line'
import { provisionProject, startInstallation, withRegistry } from '@sluice/local'
import { QueryableProbe, type QueryableTimes } from '../measure/queryable-probe.ts'
import { Store } from '../measure/store.ts'

const commandLine = new CommandLine(`npm run lab -- rejected [options]

  --entries N   entries that wait when the worker starts; default 60000
  --fractions L one entry in how many is rejected, comma-separated; default 0,1000,200,10
  --seconds N   of the comparison with another project, per fraction; default 20
  --rate N      entries per second of that comparison; default 2000
  --help        prints this text

A project sends entries, and a constraint of the table rejects some of them. First its entries wait in the queue, and one worker stores
them. Then it sends at a rate, and another project sends 20 entries per second, which are looked up until they can be queried.
`)
const values = commandLine.read({
  entries: { type: 'string', default: '60000' },
  fractions: { type: 'string', default: '0,1000,200,10' },
  seconds: { type: 'string', default: '20' },
  rate: { type: 'string', default: '2000' },
})
const entries = commandLine.positive('entries', values.entries)
const seconds = commandLine.positive('seconds', values.seconds)
const rate = commandLine.positive('rate', values.rate)
const fractions = values.fractions.split(',').map(Number)

const BATCH = 100
const CONNECTIONS = 16
const POLL_MS = 50
const DRAIN_MS = 600_000

const installation = await startInstallation()
const { clickhouse, apiUrl } = installation
const store = new Store(clickhouse)
try {
  await command(
    clickhouse,
    `ALTER TABLE ${logsTable} ADD CONSTRAINT bench CHECK message NOT LIKE 'rejected%'`,
  )
  console.log('one in   stored/s   dead letters   other project, ms: p50   p99')
  for (const [run, fraction] of fractions.entries()) {
    const stored = await drain(fraction, `waiting-${run}`)
    const { p50Ms, p99Ms } = await compare(fraction, `sending-${run}`)
    console.log(
      [fraction || 'none', Math.round(stored.perS), stored.deadLetters, p50Ms, p99Ms]
        .map((value, i) => String(value).padStart([6, 11, 15, 24, 6][i] ?? 0))
        .join(''),
    )
  }
} finally {
  await store.close()
  await installation.stop()
}
process.exit()

/** Stores the entries of a project that wait for a worker. */
async function drain(fraction: number, projectId: string): Promise<{ perS: number; deadLetters: number }> {
  const { worker } = installation.processes
  const key = await makeProject(projectId)
  await worker.stop()
  let sent = 0
  const send = async (): Promise<void> => {
    while (sent < entries) await post(key, (sent += BATCH), fraction)
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, send))
  await worker.start()
  const [startedMs, atStart] = [performance.now(), await count(logsTable, projectId)]
  for (;;) {
    const [rows, deadLetters] = [await count(logsTable, projectId), await count(deadLettersTable, projectId)]
    const passedMs = performance.now() - startedMs
    if (rows + deadLetters >= sent) return { perS: ((rows - atStart) * 1_000) / passedMs, deadLetters }
    if (passedMs > DRAIN_MS) throw new Error(`${sent - rows - deadLetters} of ${sent} are missing`)
    await pause(POLL_MS)
  }
}

/** Sends entries of a project at a rate, and measures when those of another one can be queried. */
async function compare(fraction: number, projectId: string): Promise<QueryableTimes> {
  const key = await makeProject(projectId)
  // Probes of an earlier comparison have the same messages.
  await store.clear()
  const probe = new QueryableProbe({ ...installation, url: `${apiUrl}/v1/logs` }, store)
  const result = probe.run()
  const startedMs = performance.now()
  const posts: Promise<void>[] = []
  for (let sent = 0; sent < rate * seconds; sent += BATCH) {
    await pause(startedMs + (sent * 1_000) / rate - performance.now())
    posts.push(post(key, sent, fraction))
  }
  probe.stop()
  await Promise.all(posts)
  return result
}

function makeProject(projectId: string): Promise<string> {
  return withRegistry(installation, (registry) => provisionProject(registry, projectId))
}

async function post(key: string, from: number, fraction: number): Promise<void> {
  const logs = Array.from({ length: BATCH }, (_, i) => ({
    level: 'info',
    service: 'checkout',
    message: `${fraction > 0 && (from + i) % fraction === 0 ? 'rejected' : 'order'} ${from + i} was paid in ${i} ms`,
    metadata: { user: { id: from + i }, attempt: i },
  }))
  const response = await fetch(`${apiUrl}/v1/logs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(logs),
  })
  if (response.status !== 202) throw new Error(await response.text())
  await response.body?.cancel()
}

async function count(table: string, projectId: string): Promise<number> {
  const query = `SELECT toUInt32(count()) AS rows FROM ${table} WHERE project_id = {projectId: String}`
  return (await select<{ rows: number }>(clickhouse, query, { projectId }))[0]?.rows ?? 0
}
