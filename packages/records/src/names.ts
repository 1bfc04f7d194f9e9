import type { Numbering } from './levels.ts'

/** How values are read, in the order of `assembly/loggers/uses.ts` of @sluice/row-scanner. */
export const readings = ['time', 'level', 'text', 'line', 'string', 'environment', 'stack', 'object'] as const
/** The records that some names belong to, in the same order. Elsewhere `name` is the name of a logger or of a thing. */
export const conditions = ['bunyan', 'mongo'] as const

/** What a name in a record means. */
export interface NameRole {
  /** The field of the entry. */
  readonly field: string
  readonly reading: (typeof readings)[number]
  /** What a number means as a level. */
  readonly numbering: Numbering
  readonly condition?: (typeof conditions)[number]
  /** Names with a smaller rank come first. */
  readonly rank: number
}

/**
 * The names of each field, in lower case. If a record has several, the first with a usable value is taken: names of levels say more than numbers,
 * and `service` says more than `name`. A number under `severity` is one of syslog (RFC 5424).
 */
const table: readonly (readonly [
  field: string,
  reading: NameRole['reading'],
  names: string,
  more?: Partial<Pick<NameRole, 'numbering' | 'condition'>>,
])[] = [
  ['timestamp', 'time', 'timestamp @timestamp time ts datetime eventtime event_time asctime t @t'],
  ['timestamp', 'time', 'time_local time_iso8601 __realtime_timestamp date timeunixnano observedtimestamp'],
  ['timestamp', 'time', 'observedtimeunixnano timemillis instant requestreceivedtimestamp created_at'],
  ['timestamp', 'time', 'createdat written_at record.time'],
  ['level', 'level', 'level'],
  ['level', 'level', 'severity', { numbering: 'syslog' }],
  ['level', 'level', 'levelname log.level loglevel log_level lvl severitytext severity_text level_name'],
  ['level', 'level', 'error_severity @l @level sev record.level jsonpayload.level'],
  ['level', 'level', 'priority syslog_severity syslog.severity', { numbering: 'syslog' }],
  ['level', 'level', 'log.syslog.severity.code', { numbering: 'syslog' }],
  ['level', 'level', 'severitynumber severity_number', { numbering: 'otel' }],
  ['level', 'level', 'levelno', { numbering: 'python' }],
  ['level', 'level', 's', { numbering: 'mongo', condition: 'mongo' }],
  ['message', 'text', 'message msg event'],
  ['message', 'line', 'log'],
  ['message', 'text', 'body record.message text short_message full_message @m @mt renderedmessage'],
  ['message', 'text', 'rendered_message messagetemplate textpayload fields.message @message'],
  ['message', 'text', 'jsonpayload.message jsonpayload.msg logevent.message'],
  ['service', 'string', 'service service.name service_name servicename app application appname app_name'],
  ['service', 'string', 'application_name syslog_identifier'],
  ['service', 'string', 'name', { condition: 'bunyan' }],
  ['environment', 'environment', 'environment env service.environment deployment.environment'],
  ['environment', 'environment', 'deployment.environment.name node_env'],
  ['stack', 'stack', 'stack stacktrace stack_trace exception exc_info exc_text error.stack_trace'],
  ['stack', 'stack', 'error.stack err.stack err.stack_trace exception.stacktrace'],
  ['stack', 'stack', 'thrown.extendedstacktrace @x'],
  ['source', 'string', 'source'],
  ['url', 'string', 'url url.full'],
  ['pathname', 'string', 'pathname url.path'],
  ['metadata', 'object', 'metadata'],
]

export const rolesByName: ReadonlyMap<string, NameRole> = new Map(
  table
    .flatMap(([field, reading, names, more]) =>
      names.split(' ').map((name) => [name, field, reading, more] as const),
    )
    .map(([name, field, reading, more], rank) => [
      name,
      { field, reading, numbering: 'pino', ...more, rank },
    ]),
)

/**
 * The objects in which transports put what a program logs. A service, an environment, a source, a stack and a URL count in them too, after those of
 * the record itself. A time, a level and a message do not: they may be those of something else.
 */
export const wrappers: ReadonlySet<string> = new Set(
  'meta fields extra record.extra jsonpayload logevent'.split(' '),
)
const wrappedReadings: ReadonlySet<string> = new Set(['string', 'environment', 'stack'])

/** The names of objects that have fields of an entry, such as `log` of `log.level`. */
export const parents: ReadonlySet<string> = new Set(
  [...rolesByName.keys(), ...wrappers]
    .filter((name) => name.includes('.'))
    .map((name) => name.split('.')[0] ?? ''),
)

/** Added to the rank of a name in another case: if a record has `level` and `Level`, the first is taken. */
const OTHER_CASE_RANK = 0.5

/** The longest name is far shorter. */
const NAME_CHARACTERS_MAX = 32

/** Added to the rank of a name in a wrapper. */
const WRAPPED_RANK = 1_000

/** The role of a name within a wrapper. */
export function roleOfWrapped(name: string): NameRole | undefined {
  const role = roleOfName(name)
  if (role === undefined || role.condition !== undefined || !wrappedReadings.has(role.reading))
    return undefined
  return { ...role, rank: role.rank + WRAPPED_RANK }
}

/** The role of a name in any spelling: `@timestamp`, `MESSAGE`, `logLevel`. */
export function roleOfName(name: string): NameRole | undefined {
  if (name.length > NAME_CHARACTERS_MAX) return undefined
  const exact = rolesByName.get(name)
  if (exact !== undefined) return exact
  const other = rolesByName.get(name.toLowerCase())
  return other === undefined ? undefined : { ...other, rank: other.rank + OTHER_CASE_RANK }
}

export function isIn(names: ReadonlySet<string>, name: string): boolean {
  return name.length <= NAME_CHARACTERS_MAX && names.has(name.toLowerCase())
}
