// `npm run lab -- search`: what the query API takes in a large table, and what ways to store the table cost an insert.
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connectClickHouse, logsTable, migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import { CommandLine } from '@sluice/harness/command-line'
import { startClickHouse, Supervisor } from '@sluice/local'
import { TestQuery } from '../../../apps/query/test/support/test-query.ts'
import { ProcessMeter } from '../measure/process-meter.ts'
import { alignColumns, formatNumber } from '../report.ts'
import { type Option, options, searches } from './searches.ts'
import { copyDay, DAY_MS, insertDay, PROJECT, readServices, ROWS_PER_DAY, storeLines } from './table.ts'

const commandLine = new CommandLine(`npm run lab -- search [options]

  --millions N   rows of each table, five million a day; default 5
  --lines DIR    a folder with files of lines (*.log, *.tsv), each of a service; default: those of LogHub that the tests have
  --only LIST    of ${Object.keys(options).join(',')}; default all
  --searches T   only searches with this text in their names
  --data DIR     a folder that keeps the table: a further run with it only searches
  --help         prints this text

Nearly all rows are of one project, in which everything is searched. The last day is inserted in batches without merges, then merged, so that
each has its cost. Times are the median of five answers of the query API, after one that reads the disk. ClickHouse's cache of conditions is emptied
before each. In parentheses is the CPU time of all threads of ClickHouse.
`)
const values = commandLine.read({
  millions: { type: 'string', default: '5' },
  lines: {
    type: 'string',
    default: fileURLToPath(new URL('../../../apps/cli/test/lines/fixtures/loghub', import.meta.url)),
  },
  only: { type: 'string', default: Object.keys(options).join(',') },
  searches: { type: 'string', default: '' },
  data: { type: 'string' },
})
const rows = commandLine.positive('millions', values.millions) * 1_000_000
const days = Math.ceil(rows / ROWS_PER_DAY)
const rowsOfDay = Math.min(rows, ROWS_PER_DAY)
const services = readServices(values.lines)
const only = values.only.split(',')
const chosen = Object.entries(options).filter(([name]) => only.includes(name))
if (chosen.length === 0 || services.size === 0) commandLine.fail('no such option, or no lines')
if (values.data !== undefined && chosen.length > 1) commandLine.fail('--data needs one option')

const TIMEOUT_MS = 1_800_000
const ROUNDS = 5
const SOURCE = 'source'
/** As large as the batches of a worker at 60,000 entries per second. */
const insertSettings = {
  max_threads: 1,
  max_insert_threads: '1',
  max_block_size: '32768',
  max_insert_block_size: '32768',
  min_insert_block_size_rows: '32768',
  min_insert_block_size_bytes: '0',
} as const

const supervisor = new Supervisor({ dataDir: values.data })
try {
  const { process: server, access, readAccess } = await startClickHouse(supervisor)
  const client = connectClickHouse(access, { requestTimeoutMs: TIMEOUT_MS, connectionsMax: 2 })
  const readers = connectClickHouse(readAccess, { requestTimeoutMs: TIMEOUT_MS, connectionsMax: 8 })
  const api = new TestQuery(readers)
  await api.listen()
  const project = api.registry.addProject({ id: PROJECT })
  const { key } = api.registry.addKey({ projectId: project.id, scopes: ['read'] })
  const meter = new ProcessMeter({ api: [], worker: [], redis: [], clickhouse: [server.pid ?? 0] })
  const command = async (query: string, settings = {}): Promise<void> => {
    await client.command({ query, clickhouse_settings: settings })
  }
  const select = async <Row>(query: string): Promise<Row[]> => {
    const result = await client.query({ query, format: 'JSONEachRow' })
    return result.json<Row>()
  }
  const cpuMs = async (work: () => Promise<unknown>): Promise<number> => {
    const startMs = meter.read(0).usage.clickhouse.cpuMs
    await work()
    return meter.read(0).usage.clickhouse.cpuMs - startMs
  }
  const merged = async (): Promise<void> => {
    for (let calm = 0; calm < 10; calm += 1) {
      await delay(1_000)
      if ((await select('SELECT 1 FROM system.merges LIMIT 1')).length > 0) calm = 0
    }
  }

  const cells = [['', '', ...chosen.map(([name]) => name)]]
  const row = (name: string, unit: string): string[] => {
    const found = cells.find(([own]) => own === name) ?? [name, unit]
    if (found.length === 2) cells.push(found)
    return found
  }
  const fill = async ({ alter = [], settings = {}, after = [] }: Option): Promise<void> => {
    const endMs = Math.floor(Date.now() / DAY_MS) * DAY_MS
    await storeLines(client, services)
    await command(`CREATE TABLE ${SOURCE} AS ${logsTable}`)
    await command(insertDay(SOURCE, rowsOfDay, endMs))
    for (const change of alter) await command(`ALTER TABLE ${logsTable} ${change}`)
    for (let day = days - 1; day > 0; day -= 1)
      await command(copyDay(SOURCE, logsTable, day), { ...settings, max_insert_threads: '2' })
    await merged()
    await command(`SYSTEM STOP MERGES ${logsTable}`)
    const insert = `INSERT INTO ${logsTable} SELECT * FROM ${SOURCE}`
    const inserting = await cpuMs(() => command(insert, { ...insertSettings, ...settings }))
    await command(`DROP TABLE ${SOURCE}`)
    const merging = await cpuMs(async () => {
      await command(`SYSTEM START MERGES ${logsTable}`)
      await command(`OPTIMIZE TABLE ${logsTable}`)
      await merged()
    })
    const materializing = await cpuMs(async () => {
      for (const change of after) await command(`ALTER TABLE ${logsTable} ${change}`)
    })
    row('insert', 'µs/row').push(formatNumber((inserting * 1_000) / rowsOfDay, 2))
    row('merges', 'µs/row').push(formatNumber((merging * 1_000) / rowsOfDay, 2))
    row('index by hand', 'µs/row').push(formatNumber((materializing * 1_000) / rows, 2))
  }
  for (const [, option] of chosen) {
    await migrate(access, await readMigrations(migrationsFolder))
    if ((await select(`SELECT 1 FROM ${logsTable} LIMIT 1`)).length === 0) await fill(option)
    const [size] = await select<{ bytes: number; parts: number }>(
      `SELECT sum(bytes_on_disk) / sum(rows) AS bytes, toUInt32(count()) AS parts FROM system.parts
        WHERE active AND database = currentDatabase() AND table = '${logsTable}'`,
    )
    row('disk', 'B/row').push(formatNumber(size?.bytes, 1))
    row('parts', '').push(formatNumber(size?.parts, 0))
    const [times = { fromMs: 0, lastMs: 0 }] = await select<{ fromMs: number; lastMs: number }>(
      `SELECT toUInt32(toUnixTimestamp(min(timestamp))) * 1000 AS fromMs, toUInt32(toUnixTimestamp(max(timestamp))) * 1000 AS lastMs FROM ${logsTable}`,
    )
    const endMs = Math.ceil((times.lastMs + 1) / DAY_MS) * DAY_MS
    const [entry = { id: '', requestId: '' }] = await select<{ id: string; requestId: string }>(
      `SELECT toString(id) AS id, JSONExtractString(metadata_text, 'requestId') AS requestId FROM ${logsTable}
        WHERE project_id = '${PROJECT}' AND timestamp >= fromUnixTimestamp64Milli(${endMs - DAY_MS / 2}) ORDER BY timestamp LIMIT 1`,
    )
    for (const [search, { operation, parameters }] of Object.entries(searches(times.fromMs, endMs, entry))) {
      if (!search.includes(values.searches)) continue
      const walls: number[] = []
      const cpus: number[] = []
      for (let round = 0; round <= ROUNDS; round += 1) {
        await command('SYSTEM DROP QUERY CONDITION CACHE')
        const startMs = performance.now()
        cpus.push(await cpuMs(() => api.json(key, operation, parameters)))
        walls.push(performance.now() - startMs)
      }
      const [wall, cpu] = [walls, cpus].map((all) => formatNumber(median(all.slice(1)), 0))
      row(search, 'ms').push(`${wall} (${cpu})`)
      process.stderr.write(`${search}: ${wall} (${cpu})\n`)
    }
    if (values.data === undefined) await command(`DROP DATABASE ${access.database} SYNC`)
  }
  console.log(alignColumns(cells).join('\n'))
} finally {
  await supervisor.stop()
}
process.exit()

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
}
