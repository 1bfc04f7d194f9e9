/** A longer text in brackets is part of the message. */
const GROUP_CHARACTERS_MAX = 160
const WORD_CHARACTERS_MAX = 160

/** A part of a header: a word, or a text in brackets. */
export interface Part {
  readonly kind: 'word' | '[' | '(' | '<' | '{'
  readonly text: string
  readonly start: number
  /** The position after the part, closing bracket included. */
  readonly end: number
}

const closers: Readonly<Record<string, string>> = { '[': ']', '(': ')', '<': '>', '{': '}' }

/** Skips blanks, and dashes, bars, colons and commas that stand between parts. */
export function skipSeparators(text: string, start: number): number {
  let at = start
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === 32 || code === 9 || code === 124 /* | */) continue
    if (code === 58 /* : */ || code === 44 /* , */ || code === 59 /* ; */) continue
    if (code !== 45 /* - */) break
    // A dash is a separator only if it stands free. `---` is, too.
    const end = endOfDashes(text, at)
    if (end < text.length && text.charCodeAt(end) !== 32 && text.charCodeAt(end) !== 9) break
    at = end - 1
  }
  return at
}

function endOfDashes(text: string, start: number): number {
  let at = start
  while (text.charCodeAt(at) === 45) at += 1
  return at
}

export function readPart(text: string, start: number): Part | undefined {
  const kind = text.charAt(start)
  if (kind === '') return undefined
  if (kind === '[' || kind === '(' || kind === '<' || kind === '{') return readGroup(text, start, kind)
  let end = start
  while (end < text.length && end - start <= WORD_CHARACTERS_MAX && !isWordEnd(text, end)) end += 1
  return end === start ? undefined : { kind: 'word', text: text.slice(start, end), start, end }
}

/** A word ends before a blank or a bar, and before a colon unless it is within a name, such as `shop::orders` or `a.go:12`. */
function isWordEnd(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  if (code === 32 || code === 9 || code === 124 || code === 59) return true
  if (code !== 58 /* : */) return false
  const next = text.charCodeAt(at + 1)
  const isNumber = next >= 48 && next <= 57
  return !(isNumber || next === 58 || text.charCodeAt(at - 1) === 58)
}

function readGroup(text: string, start: number, kind: '[' | '(' | '<' | '{'): Part | undefined {
  const close = closers[kind]
  let depth = 0
  const last = Math.min(text.length, start + GROUP_CHARACTERS_MAX)
  for (let at = start; at < last; at += 1) {
    const character = text.charAt(at)
    if (character === kind) depth += 1
    else if (character === close) {
      depth -= 1
      if (depth === 0) return { kind, text: text.slice(start + 1, at), start, end: at + 1 }
    }
  }
  return undefined
}
