import { type Entry, levels } from '@sluice/schema'

/** A level of the contract. */
export type Level = Entry['level']

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

const levelsByName: ReadonlyMap<string, Level> = new Map(
  levels.flatMap((level) => names[level].split(' ').map((name): [string, Level] => [name, level])),
)

/** Names that mean exactly a level of the contract. The others say more, for example that the program ended. */
const synonyms: ReadonlySet<string> = new Set(
  [...levels, 'dbg dbug information inf warning wrn err eror erro'].flatMap((text) => text.split(' ')),
)

/** The longest name is far shorter. A long text is not worth a conversion to lower case. */
const NAME_CHARACTERS_MAX = 32

/** The level with this name in any of the common loggers, in upper or lower case. */
export function levelOf(name: string): Level | undefined {
  return levelsByName.get(name) ?? levelsByName.get(normalize(name))
}

/** Whether the name says no more than its level: `WARNING` does not, `FATAL` does. */
export function isSynonym(name: string): boolean {
  return synonyms.has(normalize(name))
}

function normalize(name: string): string {
  return name.length > NAME_CHARACTERS_MAX ? '' : name.trim().toLowerCase()
}

const syslogLevels: readonly Level[] = 'error error error error warn info info debug'.split(' ') as Level[]

/** @param severity 0 (emergency) to 7 (debug), by RFC 5424 */
export function levelOfSyslogSeverity(severity: number): Level | undefined {
  return syslogLevels[severity]
}

/** The numbers of pino and bunyan: 10 (trace) to 60 (fatal). */
export function levelOfPinoNumber(number: number): Level | undefined {
  return pinoLevels.get(number)
}
const pinoLevels: ReadonlyMap<number, Level> = new Map([
  [10, 'debug'],
  [20, 'debug'],
  [30, 'info'],
  [40, 'warn'],
  [50, 'error'],
  [60, 'error'],
])

/** The numbers of OpenTelemetry: 1 (trace) to 24 (fatal), four for each of its six severities. */
export function levelOfOtelNumber(number: number): Level | undefined {
  if (!Number.isInteger(number) || number < 1 || number > 24) return undefined
  return otelLevels[Math.ceil(number / 4) - 1]
}
const otelLevels: readonly Level[] = ['debug', 'debug', 'info', 'warn', 'error', 'error']

/** The numbers of Python's logging: 10 (debug) to 50 (critical). */
export function levelOfPythonNumber(number: number): Level | undefined {
  return number === 10 ? 'debug' : levelOfPinoNumber(number + 10)
}
