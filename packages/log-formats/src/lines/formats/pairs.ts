import { type Members, setMember } from '@sluice/records'
import { timeOfFields } from './field-time.ts'
import type { LineFormat } from './format.ts'
import { LogLine } from './log-line.ts'

const START = /[\w.@/-]{1,64}=/y
const PAIR = /\s*([^\s="]{1,256})=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))(?=\s|$)/y
/** Without one of these, pairs of keys and values may be any text. */
const KNOWN = /(?:^|\s)(?:level|lvl|severity|msg|message|time|ts|t|timestamp)=/

/** Lines in logfmt: only pairs of keys and values, `level=info msg="all good"`. */
export const pairs: LineFormat = (text, { fieldTime }) => {
  const record = parsePairs(text)
  if (record === undefined) return undefined
  const line = new LogLine()
  line.record = record
  line.timestamp = timeOfFields(record, fieldTime)
  return line
}

function parsePairs(text: string): Members | undefined {
  START.lastIndex = 0
  if (!START.test(text) || !KNOWN.test(text)) return undefined
  const record: Members = {}
  let at = 0
  let count = 0
  for (;;) {
    PAIR.lastIndex = at
    const match = PAIR.exec(text)
    if (match === null) break
    const [, name = '', quoted, plain = ''] = match
    // The last of several values of a name is taken, as in JSON. That would lose the others.
    if (Object.hasOwn(record, name)) return undefined
    setMember(record, name, quoted === undefined ? valueOf(plain) : unescape(quoted))
    at = PAIR.lastIndex
    count += 1
  }
  return count >= 2 && text.slice(at).trim() === '' ? record : undefined
}

/** A number, if it is written as JavaScript would write it: then it keeps all its digits. */
function valueOf(text: string): number | string {
  const number = Number(text)
  return text !== '' && Number.isFinite(number) && String(number) === text ? number : text
}

function unescape(text: string): string {
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text.replaceAll(/\\(["\\])/g, '$1')
  }
}
