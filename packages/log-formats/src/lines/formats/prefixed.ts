import { type LineFormat, matchAt } from './format.ts'
import { setLevelOf } from './level-words.ts'
import { readTimed } from './timed.ts'

/** The name of a file before the time, as in collected logs of OpenStack. */
const FILE_NAME = /([\w.@/:-]{1,200}) (?=\d{4}-\d\d-\d\d[ T]\d\d:)/y

export const fileNameFirst: LineFormat = (text, context) => {
  const match = matchAt(FILE_NAME, text, 0)
  if (match === undefined) return undefined
  const line = readTimed(text, FILE_NAME.lastIndex, context)
  line?.add('file', match[1])
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
  return line
}

const HASHES = /####(?=<)/y

/** The log of a server of WebLogic: the same layout as its output, after four signs. */
export const hashesFirst: LineFormat = (text, context) =>
  matchAt(HASHES, text, 0) === undefined ? undefined : readTimed(text, HASHES.lastIndex, context)

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
