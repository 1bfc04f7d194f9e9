/** A piece of an entry's text. The page sets it as text, never as markup. */
export interface Piece {
  readonly text: string
  readonly kind: 'plain' | 'mark' | 'hidden'
  /** What a character is that would be invisible, or would rearrange others. */
  readonly title?: string
}

// Controls, marks and overrides of the direction, invisible characters, separators, tags, and halves of surrogate pairs. Joiners are
// left alone: emoji and several scripts need them.
const hidden =
  // eslint-disable-next-line no-control-regex -- Control characters are what it looks for.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/gu
const lineBreaks = /[\n\t]/

/** `^[` for an escape, as terminals show it, and `U+202E` for other characters. */
function nameOf(code: number): string {
  if (code < 0x20 || code === 0x7f) return `^${String.fromCharCode(code ^ 0x40)}`
  return unicodeName(code)
}
const unicodeName = (code: number): string => `U+${code.toString(16).toUpperCase().padStart(4, '0')}`

/** Splits a text by the occurrences of some texts, in any case. */
function markedPieces(text: string, marks: readonly string[]): Piece[] {
  const wanted = marks.filter((mark) => mark !== '').map((mark) => RegExp.escape(mark))
  if (wanted.length === 0) return [{ text, kind: 'plain' }]
  return text
    .split(new RegExp(`(${wanted.join('|')})`, 'gi'))
    .map((part, index): Piece => ({ text: part, kind: index % 2 === 1 ? 'mark' : 'plain' }))
    .filter((piece) => piece.text !== '')
}

/** A text as pieces, with what would be invisible shown. In one line, breaks and tabs are shown too. */
export function piecesOf(text: string, marks: readonly string[] = [], oneLine = false): Piece[] {
  if (text.search(hidden) === -1 && !(oneLine && lineBreaks.test(text))) return markedPieces(text, marks)
  const pieces: Piece[] = []
  let at = 0
  const all = oneLine ? new RegExp(`${hidden.source}|[\\n\\t]`, 'gu') : hidden
  for (const match of text.matchAll(all)) {
    if (match.index > at) pieces.push(...markedPieces(text.slice(at, match.index), marks))
    at = match.index + match[0].length
    const code = match[0].codePointAt(0) ?? 0
    pieces.push({
      text: match[0] === '\n' ? '⏎' : match[0] === '\t' ? '→' : nameOf(code),
      kind: 'hidden',
      title: unicodeName(code),
    })
  }
  if (at < text.length) pieces.push(...markedPieces(text.slice(at), marks))
  return pieces
}

export const count = (value: number): string => value.toLocaleString('en')
export const plural = (value: number, one: string, many: string): string =>
  `${count(value)} ${value === 1 ? one : many}`
