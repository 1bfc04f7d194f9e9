import { environments, levels } from '@sluice/schema'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { someOf } from '../options.ts'
import { parseTime, toPreciseTime } from '../times.ts'
import { metadataCondition, type MetadataFilter, parseMetadataFilter } from './metadata-filter.ts'

/**
 * Selects rows of a project. A condition that is absent holds for all. Any of the levels, and any of the environments. Times are in UTC with
 * microseconds, in ClickHouse's form. `from` is included, `until` is not.
 */
export interface RowFilter {
  readonly level?: readonly string[] | undefined
  readonly service?: string | undefined
  readonly environment?: readonly string[] | undefined
  readonly search?: string | undefined
  readonly where?: readonly MetadataFilter[] | undefined
  readonly from?: string | undefined
  readonly until?: string | undefined
}

/** Adds the options of a `RowFilter`. */
export function withRowFilter(command: Command, context: Context): Command {
  const time = (value: string): string => toPreciseTime(parseTime(value, context.nowMs()))
  return command
    .option('--level <levels>', `only these: ${levels.join(', ')}; comma-separated`, someOf(levels))
    .option('--since, --from <when>', 'from then on: a duration ago (15m, 2h, 3d) or an ISO 8601 time', time)
    .option('--until <when>', 'before this time, as for --from; +1h is ahead of now', time)
    .option('--service <name>', 'only rows of this service')
    .option('--environment <names>', `only these: ${environments.join(', ')}`, someOf(environments))
    .option('--search <text>', 'only rows with this text in the message; case is ignored')
    .option('--where <condition>', 'with this value: metadata.user.id=42; repeatable', parseMetadataFilter)
}

/** An SQL condition, with what users pass in its parameters only. */
export function rowCondition(
  projectId: string,
  { where = [], ...given }: RowFilter,
  /** The expression for a column. Default: its name. */
  column: (name: string) => string = (name) => name,
) {
  const added = where.map((each, index) => metadataCondition(each, `where${index}`, column('metadata_text')))
  const conditions: Readonly<Record<keyof typeof given, string>> = {
    level: `${column('level')} IN {level:Array(String)}`,
    service: `${column('service')} = {service:String}`,
    environment: `${column('environment')} IN {environment:Array(String)}`,
    search: `positionCaseInsensitiveUTF8(${column('message')}, {search:String}) > 0`,
    from: `${column('timestamp')} >= {from:DateTime64(6, 'UTC')}`,
    until: `${column('timestamp')} < {until:DateTime64(6, 'UTC')}`,
  }
  const names = (Object.keys(conditions) as (keyof typeof given)[]).filter(
    (name) => given[name] !== undefined,
  )
  const condition = [
    'project_id = {project:String}',
    ...names.map((name) => conditions[name]),
    ...added.map((each) => each.condition),
  ].join(' AND ')
  const values = Object.fromEntries(names.map((name) => [name, given[name]]))
  return {
    condition,
    params: Object.assign({ project: projectId }, values, ...added.map(({ params }) => params)),
  }
}
