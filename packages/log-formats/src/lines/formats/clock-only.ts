import { levelOf } from '@sluice/records'
import { type LineFormat, matchAt } from './format.ts'
import { readHeader } from './header.ts'
import { setLevel } from './level-words.ts'
import { LogLine } from './log-line.ts'

const TIME = String.raw`(?:(?:[01]?\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d{1,9})?|(?:0?[1-9]|1[0-2]):[0-5]\d ?[AP]M)`
/** `10:00:00.123 `, `10:00AM `, `[10:00:00] `, `[10:00:00 INF] `. */
const CLOCK = new RegExp(String.raw`(?:(${TIME})|\[(${TIME})(?: ([A-Za-z]{3,11}))?\])(?=[\s|:])`, 'y')

/** Lines with a time and no date: the entry has no time of its own, and the text of the time is kept. */
export const clockOnly: LineFormat = (text) => {
  const clock = matchAt(CLOCK, text, 0)
  if (clock === undefined) return undefined
  const end = CLOCK.lastIndex
  const line = new LogLine()
  line.add('time', clock[1] ?? clock[2])
  const level = clock[3] === undefined ? undefined : levelOf(clock[3])
  if (level === undefined) readHeader(text, end, line)
  else {
    setLevel(line, level, clock[3] ?? '')
    line.message = text.slice(end).trimStart()
  }
  return line
}
