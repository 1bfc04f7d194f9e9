import * as fc from 'fast-check'

/** The choices that the JSON standard leaves open to a writer. */
export interface Style {
  /** Whitespace between tokens. */
  readonly whitespace: string
  /** Whether characters beyond ASCII are escaped, as Python does by default. */
  readonly ascii: boolean
  /** Characters that are escaped without need. */
  readonly escaped: string
}

export const anyStyle: fc.Arbitrary<Style> = fc.record({
  whitespace: fc.constantFrom('', '', ' ', '\n  ', '\r\n\t'),
  ascii: fc.boolean(),
  escaped: fc.constantFrom('', '', '/', 'abc', 'e\n\\"'),
})

/** A value as JSON in this style. */
export function toJson(value: unknown, style: Style): string {
  const { whitespace } = style
  if (typeof value === 'string') return quote(value, style)
  if (typeof value !== 'object' || value === null || isRawJson(value)) return JSON.stringify(value)
  const members = Array.isArray(value)
    ? value.map((member) => toJson(member, style))
    : Object.entries(value).map(
        ([name, member]) => `${quote(name, style)}${whitespace}:${whitespace}${toJson(member, style)}`,
      )
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}${whitespace}${members.join(`${whitespace},${whitespace}`)}${whitespace}${close}`
}

function quote(text: string, { ascii, escaped }: Style): string {
  const inner = JSON.stringify(text)
    .slice(1, -1)
    .replace(/\\u....|\\?./gsu, (token) => {
      const isEscape = token.length > 1 && token.startsWith('\\')
      const mustEscape = (ascii && token > '\u007f') || escaped.includes(token)
      return isEscape || !mustEscape || token === '' ? token : escapeUnits(token)
    })
  return `"${inner}"`
}

function escapeUnits(text: string): string {
  return Array.from({ length: text.length }, (_, i) => `\\u${hex(text.charCodeAt(i))}`).join('')
}

const hex = (unit: number): string => {
  const digits = unit.toString(16).padStart(4, '0')
  return unit % 2 === 0 ? digits : digits.toUpperCase()
}

/** Whether a value is a number whose digits are kept. */
export const isRawJson = (value: unknown): boolean =>
  (JSON as unknown as { isRawJSON(value: unknown): boolean }).isRawJSON(value)
