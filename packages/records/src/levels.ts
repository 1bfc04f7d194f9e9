import { levels } from '@sluice/schema/limits'
import { isPlainObject } from './members.ts'

/** A level of the contract. */
export type Level = (typeof levels)[number]

export interface LevelReading {
  readonly level: Level
  /** Whether the level says all that the record says. `FATAL` says more than `error`. */
  readonly isExact: boolean
}

/** The names that loggers give to each level of the contract. All of them are in lower case. */
const names: Readonly<Record<Level, string>> = {
  log: 'log',
  debug:
    'debug trace verbose finest finer fine dbg config silly trc vrb dbug debug1 debug2 debug3 debug4 debug5 ' +
    'trace1 trace2 trace3 trace4 trace5 trace6 trace7 trace8',
  info: 'info information informational notice inf note system audit',
  success: 'success',
  warn: 'warn warning wrn',
  error:
    'error err severe fatal critical crit alert emerg emergency panic dpanic failure fault eror erro ftl pnc ' +
    'assert',
}

/** Names that mean exactly a level of the contract. The others say more, for example that the program ended. */
const synonyms = new Set<string>([
  ...levels,
  ...'dbg dbug information inf warning wrn err eror erro'.split(' '),
])

/** Every name of a level that is known, in lower case. */
export const levelsByName: ReadonlyMap<string, LevelReading> = new Map(
  levels.flatMap((level) =>
    names[level].split(' ').map((name) => [name, { level, isExact: synonyms.has(name) }] as const),
  ),
)

/** The longest name is far shorter. A long string is not worth a conversion to lower case. */
const NAME_CHARACTERS_MAX = 32

/** Reads the name of a level in any of the common loggers, in upper or lower case. */
export function readLevelName(name: string): LevelReading | undefined {
  const normal = name.length > NAME_CHARACTERS_MAX ? '' : name.trim().toLowerCase()
  return levelsByName.get(name) ?? levelsByName.get(normal)
}

type Numbers = ReadonlyMap<number, LevelReading>

/** @param found the names of the levels whose numbers begin with `first` and have this distance */
function numbered(first: number, step: number, found: string): Numbers {
  const unknown: LevelReading = { level: 'log', isExact: false }
  return new Map(found.split(' ').map((name, at) => [first + at * step, levelsByName.get(name) ?? unknown]))
}

const six = 'trace debug info warn error fatal'

/** What numbers mean to a logger, in the order of `assembly/loggers/levels.ts` of @sluice/row-scanner. */
export const numberings = {
  /** pino and bunyan: 10 (trace) to 60 (fatal). */
  pino: numbered(10, 10, six),
  /** Syslog, by RFC 5424: 0 (emergency) to 7 (debug). */
  syslog: numbered(0, 1, 'emergency alert critical error warning notice information debug'),
  /** OpenTelemetry: 1 (trace) to 24 (fatal), four for each of its six severities. */
  otel: new Map(
    [...numbered(1, 4, six)].flatMap(([first, { level, isExact }]) =>
      [0, 1, 2, 3].map((more) => [first + more, { level, isExact: isExact && more === 0 }]),
    ),
  ),
  /** Python's logging: 10 (debug) to 50 (critical). */
  python: numbered(10, 10, 'debug info warning error critical'),
  /** MongoDB: letters, by their places in the alphabet. A digit may follow, which is the verbosity of debug messages. */
  mongo: new Map([...numbered(4, 1, 'trace error fatal'), ...numbered(9, 14, 'info warn')]),
} as const satisfies Readonly<Record<string, Numbers>>
export type Numbering = keyof typeof numberings

/** @param numbering what a number means under the name of this value */
export function readLevel(value: unknown, numbering: Numbering): LevelReading | undefined {
  // Loguru: `{"name": "ERROR", "no": 40}`. The object is kept as the original level.
  if (isPlainObject(value) && typeof value['name'] === 'string') {
    const named = readLevel(value['name'], numbering)
    return named && { ...named, isExact: false }
  }
  if (numbering === 'mongo')
    return typeof value === 'string' && /^[A-Z]\d?$/.test(value)
      ? numberings.mongo.get(value.charCodeAt(0) - LETTER_BEFORE_A)
      : undefined
  const number = typeof value === 'string' && /^ ?\d{1,18}(?:\.0*)?$/.test(value) ? Number(value) : value
  if (typeof number === 'number') return (numberings[numbering] as Numbers).get(number)
  return typeof value === 'string' ? readLevelName(value) : undefined
}
const LETTER_BEFORE_A = 0x40
