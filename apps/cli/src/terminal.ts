import { styleText } from 'node:util'

export type Style = Parameters<typeof styleText>[0]

/** Paints text, or does not. */
export type Paint = (style: Style, text: string) => string

export function painter(colours: boolean): Paint {
  return (style, text) => (colours && text !== '' ? styleText(style, text, { validateStream: false }) : text)
}

/**
 * C0 and C1 controls move the cursor, rewrite what was printed before and reprogram the terminal; the line and
 * paragraph separators and the bidirectional controls make text look like what it is not.
 */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu

const shortEscapes: Readonly<Record<string, string>> = {
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
  '\t': String.raw`\t`,
  '\u001B': String.raw`\e`,
}

/** Text of others, safe to print: one line, and nothing in it that a terminal would obey. */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, (character) => shortEscapes[character] ?? unicodeEscape(character))
}

/** JSON text of others, safe to print: the same value, and nothing in it that a terminal would obey. */
export function escapeJsonControls(json: string): string {
  return json.replace(CONTROLS, unicodeEscape)
}

function unicodeEscape(character: string): string {
  return String.raw`\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Rows of cells, the first of them the headings, as aligned lines. */
export function table(rows: readonly (readonly string[])[], paint: Paint): string {
  const safe = rows.map((row) => row.map(escapeControls))
  const widths = (safe[0] ?? []).map((_, column) => Math.max(...safe.map((row) => row[column]?.length ?? 0)))
  const lines = safe.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return lines.map((line, index) => `${index === 0 ? paint('dim', line) : line}\n`).join('')
}
