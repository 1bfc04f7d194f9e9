import { addStatus } from './access-log.ts'
import { type LineFormat, matchAt } from './format.ts'
import { setLevelOf } from './level-words.ts'
import { readTimed } from './timed.ts'

/** A word before the time: the name of a file, as in collected logs of OpenStack, or of a program. */
const WORD = /([\w.@/:-]{1,200}) {1,2}(?=\d{4}-\d\d-\d\d[ T]\d\d:)/y

/** `Zigbee2MQTT:info`. */
const NAME_AND_LEVEL = /^(.{1,100}):(debug|info|warn|warning|error)$/

/** A word without a point or slash, before a time without a level, is part of a sentence. */
export const fileNameFirst: LineFormat = (text, context) => {
  const match = matchAt(WORD, text, 0)
  if (match === undefined) return undefined
  const [, word = ''] = match
  if (word.endsWith(':') || word.endsWith('.')) return undefined
  const line = readTimed(text, WORD.lastIndex, context)
  if (line === undefined) return undefined
  // The version of RFC 5424, which follows the priority.
  if (word === '1' && line.isZoned) return line
  if (word.includes('.') || word.includes('/')) {
    line.add('file', word)
    return line
  }
  const [, program = word, level = ''] = NAME_AND_LEVEL.exec(word) ?? []
  if (level !== '') setLevelOf(line, level)
  if (line.level === undefined) return undefined
  line.add('context', program)
  return line
}

/** A process id or a name in brackets before the time: `[1] 2026/11/20` (NATS), `[Nest] 1234  - 11/20/2026` (NestJS), `[4711] 20 Nov`. */
const BRACKETS = /\[([\w.-]{1,40})\] {1,2}(?:(\d{1,10}) {1,4}- )?(?=\d{1,4}[-/. ])/y

export const bracketsFirst: LineFormat = (text, context) => {
  const match = matchAt(BRACKETS, text, 0)
  if (match === undefined) return undefined
  const line = readTimed(text, BRACKETS.lastIndex, context)
  if (line === undefined) return undefined
  const [, name = '', pid] = match
  line.add(/^\d+$/.test(name) ? 'pid' : 'context', name)
  line.add('pid', pid)
  if (name === 'GIN') addStatus(/^(\d{3}) \|/.exec(line.message)?.[1], line)
  return line
}

const HASHES = /####(?=<)/y

/** The log of a server of WebLogic: the same layout as its output, after four signs. */
export const hashesFirst: LineFormat = (text, context) =>
  matchAt(HASHES, text, 0) === undefined ? undefined : readTimed(text, HASHES.lastIndex, context)

const GLASSFISH = /\[#\|(?=\d)/y

/** GlassFish and Payara: the values of a record between bars, `[#|2026-11-20T10:00:00.123+0100|INFO|glassfish 5|shop|…|message|#]`. */
export const barsFirst: LineFormat = (text, context) =>
  matchAt(GLASSFISH, text, 0) === undefined ? undefined : readTimed(text, GLASSFISH.lastIndex, context)

/** Thread, level, time, module, line and others, between double colons (oVirt). */
const DOUBLE_COLONS = /([^:\s]{1,100})::([A-Z]{4,8})::(?=\d{4}-)/y

export const doubleColons: LineFormat = (text, context) => {
  const match = matchAt(DOUBLE_COLONS, text, 0)
  if (match === undefined) return undefined
  const line = readTimed(text, DOUBLE_COLONS.lastIndex, context)
  if (line === undefined) return undefined
  setLevelOf(line, match[2] ?? '')
  line.add('thread', match[1])
  return line
}
