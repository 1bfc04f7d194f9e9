import { addMember, type Members, NAMES_MAX } from '../entries.ts'

/** Loki's own limits allow about 46 KiB. The labels of a stream are in the row of each of its lines. */
export const LABELS_CHARACTERS_MAX = 16_384

/** `name="value"` and what follows. Names may be quoted. Values are quoted as in Go, or raw between backquotes. */
const LABEL =
  /\s*([A-Za-z_][\w.:]*|"(?:[^"\\\n]|\\.)*")\s*=\s*("(?:[^"\\\n]|\\.)*"|`[^`]*`)\s*(?:,\s*(?=\})|(?=\})|,)/y
const END = /\s*\}\s*$/y

/**
 * Parses the labels of a stream: `{app="x", level="info"}`. A second value of a label gets a number.
 *
 * @returns undefined if the text is malformed or too long, or has too many labels
 */
export function parseLabels(text: string): Members | undefined {
  const start = /^\s*\{/.exec(text.slice(0, LABELS_CHARACTERS_MAX))?.[0].length
  if (start === undefined || text.length > LABELS_CHARACTERS_MAX) return undefined
  const labels: Members = {}
  const numbers = new Map<string, number>()
  let count = 0
  LABEL.lastIndex = start
  let end = start
  for (let match = LABEL.exec(text); match !== null; match = LABEL.exec(text)) {
    const [, name = '', value = ''] = match
    count += 1
    if (count > NAMES_MAX) return undefined
    addMember(labels, name.startsWith('"') ? unquote(name) : name, unquote(value), numbers)
    end = LABEL.lastIndex
    if (text[end] === '}') break
    LABEL.lastIndex = end
  }
  END.lastIndex = end
  return END.test(text) ? labels : undefined
}

/** An escape in a text of Go. */
const ESCAPE = /\\(x[0-9A-Fa-f]{2}|[0-7]{3}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)/g

function unquote(quoted: string): string {
  const content = quoted.slice(1, -1)
  return quoted.startsWith('`') || !content.includes('\\') ? content : content.replace(ESCAPE, decodeEscape)
}

const letters: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

/** Escaped bytes above ASCII are parts of a text that is not UTF-8. */
const REPLACEMENT = '\u{FFFD}'
const ASCII_MAX = 0x7f
const CODE_POINT_MAX = 0x10_ffff

function decodeEscape(_escape: string, body: string): string {
  const kind = body[0] ?? ''
  if (body.length === 1) return letters[kind] ?? body
  if (kind === 'u' || kind === 'U') {
    const point = Number.parseInt(body.slice(1), 16)
    const isSurrogate = point >= 0xd800 && point < 0xe000
    return isSurrogate || point > CODE_POINT_MAX ? REPLACEMENT : String.fromCodePoint(point)
  }
  const byte = kind === 'x' ? Number.parseInt(body.slice(1), 16) : Number.parseInt(body, 8)
  return byte > ASCII_MAX ? REPLACEMENT : String.fromCodePoint(byte)
}
