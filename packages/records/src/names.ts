/** A field that a value of a record can become, and how its values are read. */
export type Role = keyof typeof namesByRole

/** The names of each role. If a record has several, the first with a usable value is taken. In lower case. */
const namesByRole = {
  time:
    'timestamp @timestamp time ts datetime eventtime event_time asctime t @t time_local time_iso8601 ' +
    '__realtime_timestamp date timeunixnano observedtimestamp observedtimeunixnano timemillis instant ' +
    'requestreceivedtimestamp created_at createdat written_at record.time',
  level:
    'level severity levelname log.level loglevel log_level lvl severitytext severity_text level_name ' +
    'error_severity @l @level sev record.level jsonpayload.level',
  levelSyslog: 'priority syslog_severity syslog.severity log.syslog.severity.code',
  levelOtel: 'severitynumber severity_number',
  levelPython: 'levelno',
  message:
    'message msg event log body record.message text short_message full_message @m @mt renderedmessage rendered_message ' +
    'messagetemplate textpayload fields.message @message jsonpayload.message jsonpayload.msg logevent.message',
  service:
    'service service.name service_name servicename app application appname app_name application_name ' +
    'syslog_identifier',
  serviceOfBunyan: 'name',
  environment:
    'environment env service.environment deployment.environment deployment.environment.name node_env',
  stack:
    'stack stacktrace stack_trace exception exc_info exc_text error.stack_trace error.stack err.stack ' +
    'err.stack_trace exception.stacktrace thrown.extendedstacktrace @x',
  source: 'source',
  url: 'url url.full',
  pathname: 'pathname url.path',
  metadata: 'metadata',
}

/** The field of a role, and what is added to the ranks of its names: no role has 100 of them. */
export interface RoleUse {
  readonly field: string
  readonly rank: number
}

/** Names of levels say more than numbers, and `service` says more than `name`. */
export const roles: Readonly<Record<Role, RoleUse>> = {
  time: { field: 'timestamp', rank: 0 },
  level: { field: 'level', rank: 0 },
  levelSyslog: { field: 'level', rank: 100 },
  levelOtel: { field: 'level', rank: 200 },
  levelPython: { field: 'level', rank: 300 },
  message: { field: 'message', rank: 0 },
  service: { field: 'service', rank: 0 },
  serviceOfBunyan: { field: 'service', rank: 100 },
  environment: { field: 'environment', rank: 0 },
  source: { field: 'source', rank: 0 },
  url: { field: 'url', rank: 0 },
  pathname: { field: 'pathname', rank: 0 },
  stack: { field: 'stack', rank: 0 },
  metadata: { field: 'metadata', rank: 0 },
}

export interface NameRole {
  readonly role: Role
  /** Names with a smaller rank come first. */
  readonly rank: number
}

export const rolesByName: ReadonlyMap<string, NameRole> = new Map(
  Object.entries(namesByRole).flatMap(([role, names]) =>
    names.split(' ').map((name, rank): [string, NameRole] => [name, { role: role as Role, rank }]),
  ),
)

/** The names of objects that have fields of an entry, such as `log` of `log.level`. */
export const parents: ReadonlySet<string> = new Set(
  [...rolesByName.keys()].filter((name) => name.includes('.')).map((name) => name.split('.')[0] ?? ''),
)

/** Added to the rank of a name in another case: if a record has `level` and `Level`, the first is taken. */
const OTHER_CASE_RANK = 0.5

/** The longest name is far shorter. */
const NAME_CHARACTERS_MAX = 32

/** The role of a name in any spelling: `@timestamp`, `MESSAGE`, `logLevel`. */
export function roleOfName(name: string): NameRole | undefined {
  if (name.length > NAME_CHARACTERS_MAX) return undefined
  const exact = rolesByName.get(name)
  if (exact !== undefined) return exact
  const other = rolesByName.get(name.toLowerCase())
  return other === undefined ? undefined : { role: other.role, rank: other.rank + OTHER_CASE_RANK }
}

export function isParent(name: string): boolean {
  return name.length <= NAME_CHARACTERS_MAX && parents.has(name.toLowerCase())
}
