import { type ClickHouseClient, deadLettersTable, logsTable } from '@sluice/clickhouse'
import { PROJECT_ID } from '@sluice/projects'
import { parseQuery, type Query, queryColumns, toSql } from '@sluice/query-language'
import { processClock } from '@sluice/runtime'
import type { Command } from 'commander'
import { randomUUID } from 'node:crypto'
import { withClickHouse } from '../clickhouse-session.ts'
import { type Context, INTERRUPTED_EXIT_CODE, type Output } from '../context.ts'
import { CliError } from '../errors.ts'
import { placesOf } from '../logs/user-query.ts'
import { requireYes, withConnections, withExamples } from '../options.ts'
import { clickhouseAccess, type Flags, type RedisAccess, redisAccess } from '../service-access.ts'
import { readRedis } from '../status/status.ts'
import { escapeControls, formatCount } from '../terminal.ts'
import { parseTime, toPreciseTime } from '../times.ts'

const INTERVAL_MS = 1_000
/** API processes accept entries of a deleted project until their caches expire. */
const CACHED_S = 5
/** In normal operation a chunk is stored within seconds. During an outage, the operator repeats the command later. */
const QUEUE_WAIT_MAX_S = 600

export function define(rows: Command, context: Context): void {
  withExamples(
    withConnections(rows, 'clickhouse', 'redis'),
    ['rows delete --project shop --until 2026-11-01', 'shows how many rows would be deleted'],
    ['rows delete --project shop user.id:42 --yes', 'all entries of a user'],
  )
  const time = (value: string): string => toPreciseTime(parseTime(value, context.nowMs()))
  const command = rows
    .command('delete')
    .description(
      'permanently delete the rows and dead letters of a project that match; without a query and times, all of them',
    )
    .argument('[query...]', 'which rows, in the query language of logs')
    .requiredOption('--project <id>', 'project that the rows belong to; it may be deleted')
    .option('--since, --from <when>', 'from then on: a duration ago (15m, 2h, 3d) or an ISO 8601 time', time)
    .option('--until <when>', 'before this time, as for --from; +1h is ahead of now', time)
    .option('--yes', 'confirms that the rows are to be deleted')
    .action((words: string[], given: Omit<RowDeletion, 'query'>) => {
      const text = words.join(' ')
      const parsed = parseQuery(text)
      if ('errors' in parsed) return command.error(placesOf(text, parsed.errors))
      return deleteRows({ ...rows.opts(), ...given, query: parsed.query }, context)
    })
}

/** Times are in UTC with microseconds, in ClickHouse's form. `from` is included, `until` is not. */
interface RowDeletion extends Flags {
  readonly project: string
  readonly query: Query
  readonly from?: string
  readonly until?: string
  readonly yes?: true
}

/**
 * Deletes the rows and the dead letters of a project that match a filter, by a mutation: a lightweight `DELETE` hides rows, and leaves them
 * on the disk.
 *
 * @param owner the project with what belongs to it, and how to delete it before its rows, after the user has confirmed
 */
export async function deleteRows(
  options: RowDeletion,
  context: Context,
  owner?: { readonly what: string; readonly delete: () => Promise<void> },
): Promise<void> {
  const { project, yes } = options
  // Dead letters of unknown projects have an empty id.
  if (!PROJECT_ID.test(project)) throw new CliError(`${project} is not the id of a project`)
  const redis = await redisAccess(options, context)
  const access = await clickhouseAccess(options, context, redis)
  const tables = [
    { table: deadLettersTable, ...rowCondition(options, columnOfLetter) },
    { table: logsTable, ...rowCondition(options) },
  ]
  const { stdout } = context
  const [letterCount, rowCount] = await withClickHouse(access, (client) =>
    Promise.all(
      tables.map(async ({ table, condition, params }) => {
        const query = `SELECT toUInt32(count()) AS count FROM ${table} WHERE ${condition}`
        return formatCount((await select<{ count: number }>(client, query, params))[0]?.count ?? 0)
      }),
    ),
  )
  const found = `${rowCount} rows and ${letterCount} dead letters of the project ${project}`
  requireYes(yes, owner === undefined ? found : `${owner.what}, and ${found}`)
  const signal = context.abortOnInterrupt()
  await owner?.delete()
  await stdout.write(`Deleting ${found}, when the entries that were accepted before are stored.\n`)
  await waitForQueue(redis, owner === undefined ? 0 : CACHED_S, signal)
  await withClickHouse(access, async (client) => {
    if (signal.aborted) return stdout.write('Interrupted: no row is deleted.\n')
    // Finds the mutations, whose ids ClickHouse does not return.
    const marker = `sluice-${randomUUID()}`
    for (const { table, condition, params } of tables)
      await client.command({
        query: `ALTER TABLE ${table} DELETE WHERE ${condition} AND '${marker}' != ''`,
        query_params: params,
        use_multipart_params_auto: true,
        clickhouse_settings: { mutations_sync: '0' },
      })
    return showProgress(client, marker, stdout, signal)
  })
  if (signal.aborted) context.exitCode = INTERRUPTED_EXIT_CODE
}

const COLUMNS = new RegExp(`\\b(?:${[...Object.keys(queryColumns), 'metadata_text'].join('|')})\\b`, 'g')

/** An SQL condition, with what users pass in its parameters only: all names of columns in it are names of columns. */
function rowCondition(
  { project, query, from, until }: RowDeletion,
  columnOf: (name: string) => string = (name) => name,
) {
  const { sql, parameters } = toSql(query)
  const conditions = [
    ...(from === undefined ? [] : [`${columnOf('timestamp')} >= {from:DateTime64(6, 'UTC')}`]),
    ...(until === undefined ? [] : [`${columnOf('timestamp')} < {until:DateTime64(6, 'UTC')}`]),
    `(${sql.replaceAll(COLUMNS, columnOf)})`,
  ]
  const params: Readonly<Record<string, unknown>> = { ...parameters, project, from, until }
  return { condition: ['project_id = {project:String}', ...conditions].join(' AND '), params }
}

/** The row that a dead letter has is JSON. */
function columnOfLetter(name: string): string {
  const field = `JSONExtractString(text, '${name}')`
  if (name === 'id') return `toUUIDOrZero(${field})`
  if (name !== 'timestamp' && name !== 'received_at') return field
  return `ifNull(parseDateTime64BestEffortOrNull(${field}, 6, 'UTC'), failed_at)`
}

/**
 * Waits until all chunks of the queue are newer than this call, or for the longest time.
 *
 * @param cachedS how long processes go on accepting entries that are to be deleted
 */
async function waitForQueue(redis: RedisAccess, cachedS: number, signal: AbortSignal): Promise<void> {
  const startMs = processClock.nowMs()
  for (let elapsedS = 0; elapsedS < QUEUE_WAIT_MAX_S; elapsedS = (processClock.nowMs() - startMs) / 1_000) {
    const { shards } = await readRedis(redis, [])
    // Without chunks, the age is 0.
    if (signal.aborted || shards.every(({ oldestAgeS }) => oldestAgeS <= elapsedS - cachedS)) return
    await processClock.sleep(INTERVAL_MS, signal)
  }
}

async function showProgress(client: ClickHouseClient, marker: string, stdout: Output, signal: AbortSignal) {
  const mutations = `system.mutations WHERE database = currentDatabase() AND position(command, '${marker}') > 0`
  const query = `SELECT countIf(is_done) = 2 AS isDone, toUInt32(sum(parts_to_do)) AS parts,
    max(latest_fail_reason) AS reason FROM ${mutations}`
  let shown = ''
  while (!signal.aborted) {
    const [state] = await select<{ isDone: number; parts: number; reason: string }>(client, query)
    const { isDone = 0, parts = 0, reason = '' } = state ?? {}
    if (isDone === 1)
      return stdout.write(
        'Deleted. Entries that were accepted meanwhile, and those of failed chunks, may be stored later: run this again.\n',
      )
    const failure = reason === '' ? '' : `; ClickHouse tries again after: ${escapeControls(reason)}`
    const progress = `${formatCount(parts)} parts of the tables are left${failure}\n`
    if (progress !== shown) await stdout.write(progress)
    shown = progress
    await processClock.sleep(INTERVAL_MS, signal)
  }
  return stdout.write(`ClickHouse goes on with the deletion. To see it: SELECT * FROM ${mutations}\n`)
}

async function select<Row>(client: ClickHouseClient, query: string, query_params = {}): Promise<Row[]> {
  const options = { format: 'JSONEachRow', use_multipart_params_auto: true } as const
  return (await client.query({ query, query_params, ...options })).json<Row>()
}
