// The table that is searched: lines of real systems, in the order in which these wrote them.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ClickHouseClient } from '@sluice/clickhouse'

/** As in a busy installation. */
export const ROWS_PER_DAY = 5_000_000
export const DAY_MS = 86_400_000
const LINES = 'lines'

/** Text files with lines, each of a service. */
export type Services = ReadonlyMap<string, readonly string[]>

export function readServices(folder: string): Services {
  const files = readdirSync(folder).filter((file) => /\.(log|tsv)$/.test(file))
  return new Map(
    files.map((file) => {
      const lines = readFileSync(join(folder, file), 'utf8').split(/\r?\n/)
      return [file.replace(/(_2k)?\.\w+$/, '').toLowerCase(), lines.filter((line) => line !== '')]
    }),
  )
}

/** Stores the lines as one sequence, in which the services take turns at random. Each begins again after its last line. */
export async function storeLines(client: ClickHouseClient, services: Services): Promise<void> {
  const all = [...services]
  const total = all.reduce((sum, [, lines]) => sum + lines.length, 0)
  const positions = all.map(() => 0)
  const values = Array.from({ length: total }, (_, place) => {
    const turn = Math.abs(Math.imul(place, 0x9e3779b1) >> 8) % all.length
    const [service = '', lines = []] = all[turn] ?? []
    const position = positions[turn] ?? 0
    positions[turn] = position + 1
    return { place, service, message: lines[position % lines.length] ?? '' }
  })
  await client.command({
    query: `CREATE TABLE IF NOT EXISTS ${LINES} (place UInt32, service String, message String) ENGINE = Memory`,
  })
  await client.command({ query: `TRUNCATE TABLE ${LINES}` })
  await client.insert({ table: LINES, values, format: 'JSONEachRow' })
}

/** What rare rows have. */
export const rare = { word: 'zanzibarquux', partOfWord: 'nzibarqu', durationMs: 60_000 } as const
/** It has nearly all rows. */
export const PROJECT = 'shop'

/** Of 400,000 rows. */
const isRare = (place: number): string => `number % 400000 = ${place}`

/**
 * The statement that inserts the rows of a day.
 *
 * When the lines begin again, longer numbers have other digits, so that identifiers are as many as in real logs, and as similar to each other
 * within a minute.
 */
export function insertDay(table: string, rows: number, endMs: number): string {
  return `INSERT INTO ${table} (id, project_id, timestamp, received_at, expires_on, level, service, environment, message, metadata_text)
    WITH fromUnixTimestamp64Micro(${(endMs - DAY_MS) * 1_000} + intDiv(number * ${DAY_MS}, ${rows}) * 1000 + number % 1000, 'UTC') AS at,
      (SELECT count() FROM ${LINES}) AS lines, leftPad(hex(toUnixTimestamp64Milli(at)), 12, '0') AS ms, cityHash64(number) AS r
    SELECT toUUID(concat(substring(ms, 1, 8), '-', substring(ms, 9), '-7000-8000-', leftPad(hex(number), 12, '0'))),
      multiIf(r % 100 = 0, 'blog', r % 100 = 1, 'ops', '${PROJECT}'), at, at, toDate(at) + 31,
      multiIf(r % 41 = 0, 'error', r % 29 = 0, 'warn', 'info'), service, 'production',
      concat(replaceRegexpAll(message, '([0-9]{3})([0-9]{2,})', concat('\\\\1', toString(intDiv(number, lines)), '\\\\2')), if(${isRare(777)}, ' ${rare.word}', '')),
      concat('{"requestId":"', hex(r), '","durationMs":', toString(if(${isRare(778)}, ${rare.durationMs}, r % 9973)),
        ',"user":{"id":', toString(r % 400009), ',"plan":"free"},"http":{"status":', toString(multiIf(r % 211 = 0, 500, r % 19 = 0, 404, 200)),
        '},"host":"app-', toString(r % 41), '"}')
    FROM (SELECT number FROM numbers_mt(${rows})) AS numbers INNER JOIN ${LINES} ON place = number % lines`
}

/** The statement that inserts the rows again, as of an earlier day. */
export function copyDay(from: string, to: string, daysEarlier: number): string {
  const shifted = ['timestamp', 'received_at', 'expires_on'].map(
    (column) => `${column} - toIntervalDay(${daysEarlier}) AS ${column}`,
  )
  return `INSERT INTO ${to} SELECT * REPLACE (${shifted.join(', ')}) FROM ${from}`
}
