import type { LogReader, ReadOptions } from '@sluice/clickhouse'
import { QUOTED_TEXT } from '@sluice/query-language'
import { environments, levels, sources } from '@sluice/schema'
import type { Range } from './cursor.ts'
import { entryColumns } from './entries.ts'
import type { FieldSql } from './fields.ts'
import { queryOf, type Selection } from './selection.ts'
import { isoMicros } from './times.ts'

const aggregateLimits = {
  /** Values of a field that a histogram distinguishes. The others are counted together. */
  histogramValuesMax: 10,
  /** A longer one is counted with the others: ClickHouse takes parameters of 128 KiB, and a character may become eight bytes. */
  histogramValueCharactersMax: 1_000,
  /** The newest entries, of which the fields are read. */
  sampleRows: 10_000,
  /** Fields of the answer. */
  fieldsMax: 1_000,
} as const

const SECOND_US = 1_000_000
/** The steps of a histogram: those that divide the next unit, so that buckets begin at whole ones. */
const stepsUs: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((ms) => ms * 1_000),
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND_US),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60 * SECOND_US),
  ...[1, 2, 3, 6, 12].map((hours) => hours * 3_600 * SECOND_US),
  ...[1, 2, 5, 10, 30, 100, 365, 1_000, 3_650].map((days) => days * 86_400 * SECOND_US),
]

/** The shortest step with which a range has at most so many buckets. */
function stepOf({ fromUs, untilUs }: Range, bucketsMax: number): bigint {
  const fits = (step: bigint): boolean =>
    untilUs <= fromUs || (untilUs - 1n) / step - fromUs / step < BigInt(bucketsMax)
  const last = BigInt(stepsUs.at(-1) ?? 1)
  let step = stepsUs.map(BigInt).find(fits) ?? last
  // One bucket may be wanted of a range that a boundary of every step divides.
  while (!fits(step)) step *= 10n
  return step
}

interface Bucket {
  readonly from: string
  counts: Record<string, number>
  /** Of values that are not distinguished. */
  other?: number
}

/** Fields with few values, all of which a histogram distinguishes. */
const smallFields: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ['level', levels],
  ['environment', environments],
  ['source', sources],
])

/**
 * Counts entries by time and by the values of a field. All buckets of the range are there. Values that are not distinguished are counted
 * together: a field may have millions. '' counts those without the field.
 */
export async function histogram(
  reader: LogReader,
  selection: Selection,
  options: ReadOptions,
  { by, bucketsMax }: { by: FieldSql; bucketsMax: number },
) {
  const { projectId, range } = selection
  const { histogramValuesMax, histogramValueCharactersMax } = aggregateLimits
  const frequent = async (): Promise<string[]> => {
    const { values: found } = await values(reader, selection, options, by, histogramValuesMax)
    return found.map(({ value }) => value).filter((value) => value.length <= histogramValueCharactersMax)
  }
  const known = ['', ...(smallFields.get(by.name) ?? (await frequent()))]
  const stepUs = stepOf(range, bucketsMax)
  const first = range.fromUs / stepUs
  const width = known.length + 1
  const bucket = 'intDiv(toUnixTimestamp64Micro(timestamp), {step:Int64}) - {first:Int64}'
  const place = `transform(toString(${by.text(by.stored)}), {known:Array(String)}, {places:Array(UInt8)}, 0)`
  // A number of two bytes is grouped without a hash table: faster than two numbers, and than strings.
  const cells = `toUInt16((${bucket}) * {width:UInt8} + ${place})`
  const query = queryOf(
    selection,
    (from) => `SELECT ${cells} AS cell, count() AS entries ${from} GROUP BY cell`,
    {
      ...by.parameters,
      step: String(stepUs),
      first: String(first),
      width,
      known,
      places: known.map((_, index) => index + 1),
    },
  )
  const buckets = Array.from(
    { length: Number((range.untilUs - 1n) / stepUs - first) + 1 },
    (_, index): Bucket => ({
      from: isoMicros((first + BigInt(index)) * stepUs),
      counts: Object.create(null) as Record<string, number>,
    }),
  )
  let total = 0
  const rows = await reader.rows<{ cell: number; entries: number }>(projectId, query, options)
  for (const { cell, entries } of rows) {
    const its = buckets[Math.floor(cell / width)]
    if (its === undefined) continue
    total += entries
    const value = known[(cell % width) - 1]
    if (value === undefined) its.other = entries
    else its.counts[value] = entries
  }
  return { step_ms: Number(stepUs) / 1_000, buckets, total }
}

/** The most frequent values of a field, and how many entries match. Those without the field are no value. */
export async function values(
  reader: LogReader,
  selection: Selection,
  options: ReadOptions,
  { stored, text, parameters }: FieldSql,
  limit: number,
) {
  // Only different values become texts, '' for the entries without the field.
  const query = queryOf(
    selection,
    (from) => `SELECT toString(${text('stored')}) AS value, sum(entries) AS count, sum(count) OVER () AS total
      FROM (SELECT ${stored} AS stored, count() AS entries ${from} GROUP BY stored)
      GROUP BY value ORDER BY count DESC, value LIMIT {limit:UInt32}`,
    { ...parameters, limit: limit + 1 },
  )
  type Row = { value: string; count: number; total: number }
  const rows = await reader.rows<Row>(selection.projectId, query, options)
  const present = rows.filter(({ value }) => value !== '').slice(0, limit)
  return { values: present.map(({ value, count }) => ({ value, count })), total: rows[0]?.total ?? 0 }
}

/** What the column `metadata` is without the values that it loses with all others: a path that is named twice, and some long numbers. */
const METADATA = `assumeNotNull(accurateCastOrNull(if(isValidJSON(metadata_text), metadata_text, ${QUOTED_TEXT}), 'JSON(max_dynamic_paths = 256)'))`

/** The fields of the newest entries, the paths of their metadata included, and how many of them have each. */
export async function fields(reader: LogReader, selection: Selection, options: ReadOptions) {
  const columns = entryColumns.map((name) =>
    ['id', 'timestamp', 'received_at'].includes(name) ? `'${name}'` : `if(${name} = '', '', '${name}')`,
  )
  const query = queryOf(
    selection,
    (from) => `SELECT name, count() AS count
      FROM (SELECT ${['metadata_text', ...entryColumns].join(', ')} ${from} ORDER BY timestamp DESC LIMIT {sample:UInt32})
      ARRAY JOIN arrayConcat([${columns.join(', ')}], arrayMap(path -> concat('metadata.', path), JSONAllPaths(${METADATA}))) AS name
      WHERE name != '' GROUP BY name ORDER BY count DESC, name LIMIT {fieldsMax:UInt32}
      SETTINGS type_json_skip_duplicated_paths = 1`,
    { sample: aggregateLimits.sampleRows, fieldsMax: aggregateLimits.fieldsMax },
  )
  const rows = await reader.rows<{ name: string; count: number }>(selection.projectId, query, options)
  return { fields: rows, sampled: rows.find(({ name }) => name === 'id')?.count ?? 0 }
}

/** About how many entries a query would read: those of the project in its time range. */
export async function estimateRows(
  reader: LogReader,
  selection: Selection,
  options: ReadOptions,
): Promise<number> {
  const all = { ...selection, condition: { sql: 'true', parameters: {} } }
  const query = queryOf(all, (from) => `EXPLAIN ESTIMATE SELECT message ${from}`)
  const rows = await reader.rows<{ rows: number }>(selection.projectId, query, options)
  return rows.reduce((sum, { rows: count }) => sum + count, 0)
}
