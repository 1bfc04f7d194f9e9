import { isPlainObject } from '@sluice/records'
import { TimeReader } from '../times/time-reader.ts'
import { type TimeZone, timeZoneOf } from '../times/time-zone.ts'
import type { FormatContext, LineFormat } from './formats/format.ts'
import { accessLog, uwsgi } from './formats/access-log.ts'
import { briefLogcat } from './formats/android.ts'
import { clockOnly } from './formats/clock-only.ts'
import { mySqlSlow, redis } from './formats/databases.ts'
import { chromium, glog, letterFirst, markFirst, tornado } from './formats/glog.ts'
import { timeOfFields } from './formats/field-time.ts'
import { dotNetConsole, levelOnly } from './formats/level-only.ts'
import { jvm, kernel } from './formats/kernel.ts'
import { cisco } from './formats/network.ts'
import { createNpm } from './formats/npm.ts'
import { pairs } from './formats/pairs.ts'
import { barsFirst, bracketsFirst, doubleColons, fileNameFirst, hashesFirst } from './formats/prefixed.ts'
import { labelledSyslog, losAlamos } from './formats/supercomputers.ts'
import { prioritySyslog } from './formats/syslog.ts'
import { audit, decodedKernel, erlangReport, indented } from './formats/system.ts'
import { levelFirst, timed } from './formats/timed.ts'
import { createW3c, isW3cHeader } from './formats/w3c.ts'
import { balancerLog, bucketLog, proxyLog } from './formats/load-balancers.ts'
import { LogLine } from './formats/log-line.ts'
import { unwrap, type UnwrappedLine } from './unwrapper.ts'

export interface LineParserOptions {
  /** The zone of times without an offset. */
  readonly zone: TimeZone
  /** For times without a year: the newest is taken that is at most a day in the future. */
  readonly nowMs: () => number
  /** Parses JSON, with all digits of numbers. Throws if the text is not JSON. */
  readonly parseJson: (text: string) => unknown
}

/** Colours and other sequences for terminals. */
// oxlint-disable-next-line no-control-regex -- sequences for terminals begin with a control character
const TERMINAL_SEQUENCE = /\u001B\[[\d;?]{0,20}[A-Za-z]/g
const ESCAPE = '\u001B['

/** Reads the prefixes of lines: time, level and what else is before the message. One parser reads the lines of one file. */
export class LineParser {
  readonly #context: FormatContext
  readonly #formats: readonly (readonly LineFormat[])[]
  /** The format of the last line, if its lines cannot be mistaken for those of another format. It is tried first. */
  #last: LineFormat | undefined
  /** The last line that named the fields of the lines after it. */
  #header: string | undefined

  constructor({ zone, nowMs, parseJson }: LineParserOptions) {
    const fieldTime = new TimeReader(timeZoneOf('UTC'), nowMs)
    this.#context = { time: new TimeReader(zone, nowMs), fieldTime, parseJson }
    this.#formats = formatsByFirstCharacter()
  }

  /** What the lines after this one mean, for a parser that begins there: it must parse this line first. */
  get header(): string | undefined {
    return this.#header
  }

  /** Takes a line out of what a container runtime has put around it. */
  unwrap(text: string): UnwrappedLine {
    return unwrap(text, this.#context.parseJson)
  }

  /** @returns undefined if the line has no prefix of a known format */
  parse(text: string): LogLine | undefined {
    if (isW3cHeader(text)) this.#header = text
    if (!text.includes(ESCAPE)) return this.#parse(text)
    return this.#parse(text.replaceAll(TERMINAL_SEQUENCE, ''))
  }

  #parse(text: string): LogLine | undefined {
    const last = this.#last?.(text, this.#context)
    if (last !== undefined) return last
    const formats = this.#formats[text.charCodeAt(0)]
    if (formats === undefined) return undefined
    for (const format of formats) {
      const line = format(text, this.#context)
      if (line === undefined) continue
      this.#last = distinctFormats.has(format) ? format : undefined
      return line
    }
    return undefined
  }
}

/** Formats that no line of another format has. */
const distinctFormats: ReadonlySet<LineFormat> = new Set([
  accessLog,
  briefLogcat,
  doubleColons,
  fileNameFirst,
  glog,
  labelledSyslog,
  letterFirst,
  levelFirst,
  losAlamos,
  prioritySyslog,
  redis,
])

const json: LineFormat = (text, { parseJson, fieldTime }) => {
  if (!/^\s*\{/.test(text)) return undefined
  try {
    const value = parseJson(text)
    if (!isPlainObject(value)) return undefined
    const line = new LogLine()
    line.record = value
    line.timestamp = timeOfFields(value, fieldTime)
    return line
  } catch {
    return undefined
  }
}

/**
 * The formats that a line can have, by the code of its first character. Formats that more lines have come first, unless
 * another format is a special case of it.
 */
function formatsByFirstCharacter(): readonly (readonly LineFormat[])[] {
  const w3c = createW3c()
  const npm = createNpm()
  const table: LineFormat[][] = []
  const add = (characters: string, ...formats: readonly LineFormat[]): void => {
    for (const character of characters) {
      const code = character.charCodeAt(0)
      table[code] = [...(table[code] ?? []), ...formats]
    }
  }
  const digits = '0123456789'
  const capitals = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
  const letters = `${capitals}${capitals.toLowerCase()}`
  add('{ \t', json)
  add(' \t', indented)
  add('=', erlangReport)
  add('*.', cisco)
  add('<', prioritySyslog, timed, markFirst)
  add('-', labelledSyslog, accessLog)
  add('ghw', balancerLog)
  add('(', timed, markFirst)
  add(
    '[',
    timed,
    uwsgi,
    chromium,
    tornado,
    levelFirst,
    clockOnly,
    kernel,
    jvm,
    bracketsFirst,
    barsFirst,
    levelOnly,
  )
  add('@', timed)
  add('/', fileNameFirst)
  add(':', accessLog)
  add('#', w3c, mySqlSlow, hashesFirst)
  add(digits, w3c, timed, accessLog, redis, losAlamos, clockOnly, cisco, npm, fileNameFirst)
  add('0123456789abcdef', bucketLog)
  add(`${digits}:`, proxyLog)
  add('nt', audit)
  add('dklmnsu', decodedKernel)
  add('n', npm)
  add('JFMASONDTW', timed)
  add(capitals, glog, letterFirst, markFirst, levelFirst, briefLogcat, labelledSyslog)
  add(capitals.toLowerCase(), levelFirst)
  add(letters, accessLog, dotNetConsole, levelOnly, pairs, fileNameFirst, doubleColons)
  return table
}
