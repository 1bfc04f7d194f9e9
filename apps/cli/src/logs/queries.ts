import { metadataCondition, type MetadataFilter } from './metadata-filter.ts'

/** Selects entries of one project. */
export interface LogFilter {
  readonly projectId: string
  /** Any of these levels; every level if empty. */
  readonly levels: readonly string[]
  readonly service: string | undefined
  /** Any of these environments; every environment, and none, if empty. */
  readonly environments: readonly string[]
  /** Text in the message; case is ignored. */
  readonly search: string | undefined
  /** All of these conditions. */
  readonly metadata: readonly MetadataFilter[]
}

/** A range of timestamps. Times are UTC with microseconds, in ClickHouse's text form. */
export interface TimeRange {
  /** Included. Undefined: without a beginning. */
  readonly from: string | undefined
  /** Excluded. */
  readonly until: string
  /** Whether the user selected the end. By default it only excludes entries of the future. */
  readonly isUntilSelected: boolean
}

/** An entry as ClickHouse returns it. Absent texts are empty. Times are UTC, in ClickHouse's text form. */
export interface LogRow {
  readonly id: string
  readonly project_id: string
  readonly timestamp: string
  readonly received_at: string
  readonly level: string
  readonly service: string
  readonly environment: string
  readonly source: string
  readonly message: string
  readonly url: string
  readonly pathname: string
  readonly stack: string
  /** JSON text. */
  readonly metadata_text: string
}

export interface Query {
  readonly query: string
  readonly query_params: Readonly<Record<string, unknown>>
}

const COLUMNS =
  'id, project_id, timestamp, received_at, level, service, environment, source, message, url, pathname, stack, metadata_text'

/** ClickHouse sorts UUIDs by their second half. Numbers sort by the first half, which is the time of a UUIDv7. */
const ID_ORDER = 'toUInt128(id)'

/** The newest matching entries with a timestamp in the range, oldest first. */
export function newestEntriesQuery(
  filter: LogFilter,
  { from, until }: Pick<TimeRange, 'from' | 'until'>,
  limit: number,
): Query {
  const { conditions, params } = filterConditions(filter)
  conditions.push("timestamp < {until:DateTime64(6, 'UTC')}")
  if (from !== undefined) conditions.push("timestamp >= {from:DateTime64(6, 'UTC')}")
  return {
    query: `SELECT * FROM (
      SELECT ${COLUMNS} FROM logs WHERE ${conditions.join(' AND ')}
      ORDER BY timestamp DESC, ${ID_ORDER} DESC LIMIT {limit:UInt32}
    ) ORDER BY timestamp, ${ID_ORDER}`,
    query_params: { ...params, limit, until, ...(from === undefined ? {} : { from }) },
  }
}

/** The number of matching entries with this timestamp or a later one; the count stops at `max`. */
export function laterEntriesQuery(filter: LogFilter, from: string, max: number): Query {
  const { conditions, params } = filterConditions(filter)
  return {
    query: `SELECT count() AS count FROM (
      SELECT 1 FROM logs
      WHERE ${conditions.join(' AND ')} AND timestamp >= {from:DateTime64(6, 'UTC')} LIMIT {max:UInt32}
    )`,
    query_params: { ...params, from, max },
  }
}

/**
 * The newest receive time of the project's rows received since `from`, without the other conditions of the filter; 1970
 * if there are none. A time in the future, from a machine whose clock is ahead, counts as now: otherwise it would hide
 * everything that is received until then.
 */
export function newestReceivedQuery({ projectId }: LogFilter, from: string): Query {
  return {
    query: `SELECT least(max(received_at), now64(3, 'UTC')) AS newest FROM logs
      WHERE project_id = {project:String} AND received_at >= {from:DateTime64(3, 'UTC')}`,
    query_params: { project: projectId, from },
  }
}

/** Id and receive time of matching entries received since `from`: the oldest or the newest `limit` of them. */
export function arrivalsQuery(
  filter: LogFilter,
  from: string,
  limit: number,
  end: 'oldest' | 'newest',
): Query {
  const { conditions, params } = filterConditions(filter)
  const direction = end === 'oldest' ? 'ASC' : 'DESC'
  return {
    query: `SELECT id, received_at FROM logs
      WHERE ${conditions.join(' AND ')} AND received_at >= {from:DateTime64(3, 'UTC')}
      ORDER BY received_at ${direction}, ${ID_ORDER} ${direction} LIMIT {limit:UInt32}`,
    query_params: { ...params, from, limit },
  }
}

/** Whether the project has any row. */
export function anyEntryQuery({ projectId }: LogFilter): Query {
  return {
    query: 'SELECT 1 FROM logs WHERE project_id = {project:String} LIMIT 1',
    query_params: { project: projectId },
  }
}

/** The entries with these ids, which were received between the two times, in the order of their receive times. */
export function entriesByIdQuery(projectId: string, ids: readonly string[], from: string, to: string): Query {
  return {
    query: `SELECT ${COLUMNS} FROM logs
      WHERE project_id = {project:String} AND id IN {ids:Array(UUID)}
        AND received_at BETWEEN {from:DateTime64(3, 'UTC')} AND {to:DateTime64(3, 'UTC')}
      ORDER BY received_at, ${ID_ORDER}`,
    query_params: { project: projectId, ids, from, to },
  }
}

function filterConditions({ projectId, levels, service, environments, search, metadata }: LogFilter): {
  conditions: string[]
  params: Record<string, unknown>
} {
  const conditions = ['project_id = {project:String}']
  const params: Record<string, unknown> = { project: projectId }
  if (levels.length > 0) {
    conditions.push('level IN {levels:Array(String)}')
    params['levels'] = levels
  }
  if (service !== undefined) {
    conditions.push('service = {service:String}')
    params['service'] = service
  }
  if (environments.length > 0) {
    conditions.push('environment IN {environments:Array(String)}')
    params['environments'] = environments
  }
  if (search !== undefined) {
    conditions.push('positionCaseInsensitiveUTF8(message, {search:String}) > 0')
    params['search'] = search
  }
  for (const [index, filter] of metadata.entries()) {
    const added = metadataCondition(filter, `where${index}`)
    conditions.push(added.condition)
    Object.assign(params, added.params)
  }
  return { conditions, params }
}
