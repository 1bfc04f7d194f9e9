// `npm run lab -- search`: what searches take in a large table, and what each index costs an insert.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connectClickHouse, logsTable, migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import { CommandLine } from '@sluice/harness/command-line'
import { startClickHouse, Supervisor } from '@sluice/local'
import { ProcessMeter } from '../measure/process-meter.ts'
import { alignColumns, formatNumber } from '../report.ts'
import { options, searches } from './searches.ts'

const commandLine = new CommandLine(`npm run lab -- search [options]

  --millions N   rows of each table, about five million a day; default 20
  --lines DIR    a folder with text files of lines; default: those of LogHub that the tests have
  --only LIST    of ${Object.keys(options).join(',')}; default all
  --help         prints this text

Nine in ten rows are of one project, in which everything is searched. A table is filled without merges, then merged, so that each has its
cost. Times are the shortest of seven, after one that reads the disk. In parentheses is the CPU time of all threads.
`)
const values = commandLine.read({
  millions: { type: 'string', default: '20' },
  lines: {
    type: 'string',
    default: fileURLToPath(new URL('../../../apps/cli/test/lines/fixtures/loghub', import.meta.url)),
  },
  only: { type: 'string', default: Object.keys(options).join(',') },
})
const rows = commandLine.positive('millions', values.millions) * 1_000_000
const days = Math.ceil(rows / 5_000_000)
const rowsPerDay = Math.round(rows / days)
const lines = readdirSync(values.lines).flatMap((file) =>
  readFileSync(join(values.lines, file), 'utf8')
    .split(/\r?\n/)
    .filter((line) => line !== ''),
)
const only = values.only.split(',')
const chosen = Object.entries(options).filter(([name]) => only.includes(name))
if (chosen.length === 0 || lines.length === 0) commandLine.fail('no such option, or no lines')

const TIMEOUT_MS = 600_000
const ROUNDS = 7
const SOURCE = 'source'
const DROP_INDEXES = 'DROP INDEX IF EXISTS words, DROP INDEX IF EXISTS values'
/** As large as the batches of a worker at 60,000 entries per second. */
const insertSettings = {
  max_threads: 1,
  max_insert_threads: '1',
  max_block_size: '32768',
  max_insert_block_size: '32768',
  min_insert_block_size_rows: '32768',
  min_insert_block_size_bytes: '0',
} as const

const supervisor = await Supervisor.open()
try {
  const { process: server, access } = await startClickHouse(supervisor)
  await migrate(access, await readMigrations(migrationsFolder))
  const client = connectClickHouse(access, { requestTimeoutMs: TIMEOUT_MS, connectionsMax: 2 })
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
  const perRow = (ms: number): string => formatNumber((ms * 1_000) / (days * rowsPerDay), 2)

  await command('CREATE TABLE lines (line UInt32, message String) ENGINE = Memory')
  await client.insert({
    table: 'lines',
    values: lines.map((message, line) => ({ line, message })),
    format: 'JSONEachRow',
  })
  await command(`CREATE TABLE ${SOURCE} AS ${logsTable}`)
  await command(`ALTER TABLE ${SOURCE} DROP INDEX received_at_range`)
  for (let day = 0; day < days; day += 1) await command(sourceDay(day, lines.length))

  const cells = [['', '', ...chosen.map(([name]) => name)]]
  const row = (name: string, unit: string): string[] => {
    const found = cells.find(([own]) => own === name) ?? [name, unit]
    if (found.length === 2) cells.push(found)
    return found
  }
  for (const [name, { alter = [], settings = {}, after = [], undo = DROP_INDEXES }] of chosen) {
    await command(`TRUNCATE TABLE ${logsTable}`)
    for (const change of alter) await command(`ALTER TABLE ${logsTable} ${change}`)
    await command(`SYSTEM STOP MERGES ${logsTable}`)
    const insert = `INSERT INTO ${logsTable} SELECT * FROM ${SOURCE}`
    row('insert', 'µs/row').push(
      perRow(await cpuMs(() => command(insert, { ...insertSettings, ...settings }))),
    )
    const merging = await cpuMs(async () => {
      await command(`SYSTEM START MERGES ${logsTable}`)
      await command(`OPTIMIZE TABLE ${logsTable}`)
      for (let calm = 0; calm < 10; calm += 1) {
        await delay(1_000)
        if ((await select('SELECT 1 FROM system.merges LIMIT 1')).length > 0) calm = 0
      }
    })
    row('merges', 'µs/row').push(perRow(merging))
    const materializing = await cpuMs(async () => {
      for (const change of after) await command(`ALTER TABLE ${logsTable} ${change}`)
    })
    row('index by hand', 'µs/row').push(perRow(materializing))
    const [size] = await select<{ bytes: number; parts: number }>(
      `SELECT sum(bytes_on_disk) / sum(rows) AS bytes, toUInt32(count()) AS parts FROM system.parts WHERE active AND table = '${logsTable}'`,
    )
    row('disk', 'B/row').push(formatNumber(size?.bytes, 1))
    row('parts', '').push(formatNumber(size?.parts, 0))
    for (const [search, sql] of Object.entries(searches(name))) {
      const times: number[] = []
      const cpuTimes: number[] = []
      for (let round = 0; round <= ROUNDS; round += 1) {
        const startMs = performance.now()
        cpuTimes.push(await cpuMs(() => select(sql)))
        times.push(performance.now() - startMs)
      }
      const [wall, cpu] = [times, cpuTimes].map((all) => formatNumber(Math.min(...all.slice(1)), 0))
      row(search, 'ms').push(`${wall} (${cpu})`)
    }
    process.stderr.write(`${alignColumns(cells).join('\n')}\n\n`)
    await command(`ALTER TABLE ${logsTable} ${undo}`)
  }
  console.log(alignColumns(cells).join('\n'))
} finally {
  await supervisor.stop()
}
process.exit()

/** Inserts the rows of a day. Numbers of three and more digits differ from line to line. */
function sourceDay(day: number, count: number): string {
  const at = `toDateTime64(today() - ${day}, 6, 'UTC') - toIntervalMicrosecond(number * ${Math.floor(86_400_000_000 / rowsPerDay)})`
  return `INSERT INTO ${SOURCE} (id, project_id, timestamp, received_at, expires_on, level, service, environment, message, metadata_text)
    SELECT generateUUIDv7(number), if(r % 10 > 0, 'shop', if(r % 20 = 0, 'blog', 'ops')), ${at}, ${at}, today() - ${day} + 31,
      if(r % 41 = 0, 'error', if(r % 29 = 0, 'warn', 'info')), concat('service-', toString(bitShiftRight(r, 8) % 24)), 'production',
      if(number % 1000000 = 777, concat(message, ' zanzibarquux'), replaceRegexpAll(message, '[0-9]{3,}', toString(r % 1000003))),
      concat('{"requestId":"', hex(r), '","durationMs":', toString(r % 9973), ',"user":{"id":', toString(r % 400009), ',"plan":"free"},"http":{"status":',
        toString([200, 200, 201, 404, 500][1 + r % 5]), '},"host":"app-', toString(r % 41), '"}')
    FROM (SELECT number, cityHash64(number, ${day}) AS r FROM numbers(${rowsPerDay})) AS n
    INNER JOIN lines ON lines.line = n.r % ${count} SETTINGS max_threads = 1`
}
