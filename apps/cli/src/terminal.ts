import { styleText } from 'node:util'
import type { Context } from './context.ts'

export type Style = Parameters<typeof styleText>[0]

export type Paint = (style: Style, text: string) => string

export function painter(colours: boolean): Paint {
  return (style, text) => (colours && text !== '' ? styleText(style, text, { validateStream: false }) : text)
}

/**
 * C0 and C1 controls can move the cursor, overwrite earlier output and reprogram the terminal. The line and paragraph
 * separators and the bidirectional controls can disguise what is printed.
 */
// oxlint-disable-next-line no-control-regex -- it must match control characters, to escape them
const CONTROLS = /[\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu

const shortEscapes = new Map(Object.entries({ '\n': 'n', '\r': 'r', '\t': 't', '\u001B': 'e' }))

/** Makes an untrusted string safe to print: one line, without control characters. */
export function escapeControls(text: string): string {
  return text.replace(CONTROLS, (each) =>
    shortEscapes.has(each) ? `\\${shortEscapes.get(each)}` : unicodeEscape(each),
  )
}

/** Makes untrusted JSON safe to print: the same value, without control characters. */
export function escapeJsonControls(json: string): string {
  return json.replace(CONTROLS, unicodeEscape)
}

function unicodeEscape(character: string): string {
  return String.raw`\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

export const formatCount = (count: number): string => count.toLocaleString('en-US')

/** Makes an address safe to print: without user, password and query. */
export function redactUrl(url: string): string {
  // The address of a Redis Cluster may name several hosts, which `URL` does not accept.
  const [, scheme = '', hosts = '', path = ''] = /^([^:]*:\/\/)(?:[^/?#]*@)?([^/?#]*)([^?#]*)/.exec(url) ?? []
  return `${scheme}${hosts}${path === '/' ? '' : path}`
}

export interface Listing<Item> {
  readonly headings: readonly string[]
  readonly cells: (item: Item) => readonly string[]
  /** What --json prints of an item. Default: the item. */
  readonly object?: (item: Item) => object
  readonly empty: string
}

export async function printList<Item extends object>(
  items: readonly Item[],
  { headings, cells, object = (item) => item, empty }: Listing<Item>,
  json: true | undefined,
  { stdout, stderr }: Context,
): Promise<void> {
  if (json) await stdout.write(items.map((item) => `${JSON.stringify(object(item))}\n`).join(''))
  else if (items.length === 0) await stderr.write(`${empty}\n`)
  else await stdout.write(table([headings, ...items.map(cells)], painter(stdout.colours)))
}

export function table(rows: readonly (readonly string[])[], paint: Paint): string {
  const safe = rows.map((row) => row.map(escapeControls))
  const widths = (safe[0] ?? []).map((_, column) => Math.max(...safe.map((row) => row[column]?.length ?? 0)))
  const pad = (cell: string, column: number): string => cell.padEnd(widths[column] ?? 0)
  const lines = safe.map((row) => row.map(pad).join('  ').trimEnd())
  return lines.map((line, index) => `${index === 0 ? paint('dim', line) : line}\n`).join('')
}
