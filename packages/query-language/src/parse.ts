import { levels } from '@sluice/schema/limits'
import { type Field, type Query, type QueryColumn, queryColumns, queryLimits, type Test } from './query.ts'
import { periodOf } from './times.ts'
import { isNumber } from './values.ts'

/** An error in the text, at a position in UTF-16. */
export interface QueryError {
  readonly position: number
  readonly message: string
}
export type ParseResult = { readonly query: Query } | { readonly errors: readonly QueryError[] }

/**
 * Parses a query. Empty text matches everything.
 *
 *     or    = and { "OR" and }
 *     and   = unary { [ "AND" ] unary }
 *     unary = ( "NOT" | "-" ) unary | "(" or ")" | term
 *     term  = [ name ":" ] ( value | "(" or ")" )       without names within the parentheses
 *     value = [ ">=" | ">" | "<=" | "<" | "=" ] ( word | string ) [ "*" ]
 *
 * A word ends at whitespace or a parenthesis.
 */
export function parseQuery(text: string): ParseResult {
  if (text.length > queryLimits.lengthMax) {
    const message = `A query has at most ${queryLimits.lengthMax} characters.`
    return { errors: [{ position: queryLimits.lengthMax, message }] }
  }
  // Half of a surrogate pair has no UTF-8 form: SQL would look for U+FFFD.
  return new Parser(text.toWellFormed()).parse()
}

const SPACE = /\s*/y
const WORD = /[^\s()]+/y
const STRING = /"(?:[^"\\]|\\.)*"/sy
const OPERATOR = />=|<=|>|<|=/y
/** Names with dots between them, up to a colon. A time and a number are no names. */
const NAME =
  /(?:[\p{L}_@$][\p{L}\p{N}_@$-]*|"(?:[^"\\]|\\.)+")(?:\.(?:[\p{L}\p{N}_@$-]+|"(?:[^"\\]|\\.)+"))*:/suy
const NAME_PART = /"(?:[^"\\]|\\.)+"|[^.":]+/gs
/** What follows the colon of `http://`, `std::string` and `C:\`, which are text. */
const NOT_A_VALUE = /[:\\]|\/\//y
/** A hyphen before anything else is text: `--verbose`, `->`, `a - b`. */
const NEGATION = /-(?=[^\s)>-])/y
const RANGE = /^(.+?)\.\.(.*)$/s
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i
const MESSAGE: Field = { type: 'column', name: 'message' }
const ESCAPES: Readonly<Record<string, string>> = { '"': '"', '\\': '\\', n: '\n', r: '\r', t: '\t' }

/** Ends the parsing. The error is recorded. */
class Unparsable extends Error {}

class Parser {
  readonly #text: string
  readonly #errors: QueryError[] = []
  #at = 0
  #terms = 0

  constructor(text: string) {
    this.#text = text
  }

  parse(): ParseResult {
    try {
      this.#take(SPACE)
      const query: Query = this.#at === this.#text.length ? { type: 'all' } : this.#or(0)
      if (this.#errors.length === 0) return { query }
    } catch (error) {
      if (!(error instanceof Unparsable)) throw error
    }
    return { errors: this.#errors.toSorted((a, b) => a.position - b.position) }
  }

  /** @param field what the terms are about, within `field:( )` @param depth 0 outside of all parentheses and negations */
  #or(depth: number, field?: Field): Query {
    const operands = [this.#and(depth, field)]
    while (this.#keyword('OR')) operands.push(this.#and(depth, field))
    return joined('or', operands)
  }

  #and(depth: number, field?: Field): Query {
    const operands = [this.#unary(depth, field)]
    for (;;) {
      const start = this.#at
      if (this.#keyword('OR')) {
        this.#at = start
        break
      }
      if (!this.#keyword('AND')) {
        if (this.#text[this.#at] === ')' && depth === 0) {
          this.#error(this.#at, 'There is no ( before this ).')
          this.#skip(1)
        }
        if (this.#at === this.#text.length || this.#text[this.#at] === ')') break
      }
      operands.push(this.#unary(depth, field))
    }
    return joined('and', operands)
  }

  #unary(depth: number, field?: Field): Query {
    const position = this.#at
    if (depth > queryLimits.depthMax)
      throw this.#fatal(position, `Parentheses and NOT are nested at most ${queryLimits.depthMax} times.`)
    if (this.#keyword('NOT') || this.#take(NEGATION) !== undefined)
      return { type: 'not', operand: this.#unary(depth + 1, field) }
    if (this.#text[position] === '(') return this.#group(depth, field)
    const next = this.#peekWord()
    if (next === undefined || next === 'OR' || next === 'AND') {
      this.#error(position, `Expected a value${next === undefined ? '' : ` before ${next}`}.`)
      return { type: 'all' }
    }
    return this.#term(depth, field)
  }

  #group(depth: number, field?: Field): Query {
    const position = this.#at
    this.#skip(1)
    if (this.#text[this.#at] === ')') {
      this.#error(position, 'Expected a value between ( and ). Quote text that has parentheses: "f()".')
      this.#skip(1)
      return { type: 'all' }
    }
    const query = this.#or(depth + 1, field)
    if (this.#text[this.#at] === ')') this.#skip(1)
    else this.#error(position, 'Expected a ) for this (. Quote text that has parentheses: "f(".')
    return query
  }

  #term(depth: number, group?: Field): Query {
    const position = this.#at
    const named = group === undefined ? this.#field() : undefined
    if (named !== undefined && this.#text[this.#at] === '(') return this.#group(depth, named)
    const field = named ?? group ?? MESSAGE
    if (++this.#terms > queryLimits.termsMax)
      throw this.#fatal(position, `A query has at most ${queryLimits.termsMax} values.`)
    const test = this.#value(field, named !== undefined || group !== undefined)
    const end = this.#at
    this.#take(SPACE)
    return test === undefined ? { type: 'all' } : { type: 'term', position, end, field, test }
  }

  /** The field that is named here. Moves behind its colon. */
  #field(): Field | undefined {
    const position = this.#at
    const name = this.#take(NAME)
    if (name === undefined) return undefined
    const isText = this.#take(NOT_A_VALUE) !== undefined
    const isAlone = this.#at === this.#text.length || /[\s)]/.test(this.#text[this.#at] ?? '')
    const parts = [...name.matchAll(NAME_PART)].map(([part]) =>
      part.startsWith('"') ? this.#unescape(part, position) : part,
    )
    const [first = ''] = parts
    const isColumn = Object.hasOwn(queryColumns, first) || first === 'metadata'
    // In `Error: timeout` a colon is text. `level: error` is an error, since `level:` in messages is not what is meant.
    if (isText || (isAlone && !isColumn && !name.startsWith('"'))) {
      this.#at = position
      return undefined
    }
    if (parts.length === 1 && !name.startsWith('"')) {
      if (Object.hasOwn(queryColumns, first)) return { type: 'column', name: first as QueryColumn }
      if (first === 'metadata')
        this.#error(position, 'Expected a path in the metadata, such as metadata.user.id.')
    }
    const path = first === 'metadata' && parts.length > 1 && !name.startsWith('"') ? parts.slice(1) : parts
    if (path.length > queryLimits.pathNamesMax)
      this.#error(position, `A path has at most ${queryLimits.pathNamesMax} names.`)
    return { type: 'path', path }
  }

  /** @param isNamed whether the text names the field @returns undefined after an error */
  #value(field: Field, isNamed: boolean): Test | undefined {
    const position = this.#at
    const operator = isNamed ? this.#take(OPERATOR) : undefined
    const start = this.#at
    const quoted = this.#string()
    const word = quoted === undefined ? this.#take(WORD) : undefined
    const text = quoted ?? word
    if (text === undefined)
      return this.#error(start, 'Expected a value directly after the colon, such as level:error.')
    const kind = field.type === 'column' ? queryColumns[field.name] : 'text'
    if (operator === '=') return this.#checked(kind, { type: 'equals', texts: [text] }, start)
    if (operator !== undefined) {
      const bound = { text, inclusive: operator.endsWith('=') }
      const test: Test = operator.startsWith('>')
        ? { type: 'range', from: bound }
        : { type: 'range', to: bound }
      return this.#checked(kind, test, start)
    }
    const isPrefix = quoted !== undefined && this.#text[this.#at] === '*'
    if (isPrefix) this.#at += 1
    if (quoted !== undefined && this.#take(WORD) !== undefined)
      return this.#error(
        position,
        'Expected a space after the closing quote. Inside quotes, write \\" for a quote.',
      )
    // Every text begins with the empty one.
    if (word === '*' || (isPrefix && text === ''))
      return isNamed ? { type: 'exists' } : { type: 'contains', text: '' }
    if (quoted !== undefined)
      return this.#checked(kind, isPrefix ? { type: 'prefix', text } : this.#plain(kind, text), start)
    const star = text.indexOf('*')
    if (star !== -1 && star < text.length - 1)
      return this.#error(start + star, 'Only the end of a value can be *. Quote text that has one: "a*b".')
    if (star !== -1) return this.#checked(kind, { type: 'prefix', text: text.slice(0, -1) }, start)
    const [, from, to] = (isNamed && RANGE.exec(text)) || []
    const isOrdered = kind === 'level' ? isLevel : isNumberOrTime
    if (from !== undefined && to !== undefined && isOrdered(from) && (to === '' || isOrdered(to))) {
      if (to === '') return this.#error(this.#at, 'Expected the end of the range, as in 400..499, or >=400.')
      const range: Test = {
        type: 'range',
        from: { text: from, inclusive: true },
        to: { text: to, inclusive: true },
      }
      return this.#checked(kind, range, start)
    }
    return this.#checked(kind, this.#plain(kind, text), start)
  }

  #plain(kind: string, text: string): Test {
    return kind === 'contained' ? { type: 'contains', text } : { type: 'equals', texts: [text] }
  }

  /** Restricts a test to what the kind of a column allows, and brings its texts into the form of the column. */
  #checked(kind: (typeof queryColumns)[QueryColumn], test: Test, position: number): Test | undefined {
    if (kind === 'id') {
      const [id = ''] = test.type === 'equals' ? test.texts : []
      if (!UUID.test(id)) return this.#error(position, 'Expected the id of an entry, which is a UUID.')
      return { type: 'equals', texts: [id.toLowerCase()] }
    }
    if (kind === 'time') return this.#time(test, position)
    if (kind !== 'level') return test
    if (test.type === 'equals') return { type: 'equals', texts: test.texts.map((text) => text.toLowerCase()) }
    if (test.type !== 'range') return test
    const [from, to] = [test.from, test.to].map((bound) => bound && rankOf(bound.text))
    if (from === -1 || to === -1) return this.#error(position, `Expected a level: ${levels.join(', ')}.`)
    const first = from === undefined ? 0 : from + (test.from?.inclusive === true ? 0 : 1)
    const last = to === undefined ? levels.length : to + (test.to?.inclusive === true ? 1 : 0)
    return { type: 'equals', texts: levels.slice(first, last) }
  }

  #time(test: Test, position: number): Test | undefined {
    const [first, last] =
      test.type === 'equals'
        ? [test.texts[0], test.texts[0]]
        : test.type === 'range'
          ? [test.from?.text, test.to?.text]
          : []
    const [from, to] = [first, last].map((text) => text !== undefined && periodOf(text))
    if ((from === false && to === false) || from === undefined || to === undefined)
      return this.#error(position, 'Expected a time, such as 2026-11-24 or 2026-11-24T10:00:00Z.')
    const isAfter = test.type === 'range' && test.from?.inclusive === false
    const isBefore = test.type === 'range' && test.to?.inclusive === false
    return {
      type: 'range',
      ...(from && { from: { text: isAfter ? from.end : from.start, inclusive: true } }),
      ...(to && { to: { text: isBefore ? to.start : to.end, inclusive: false } }),
    }
  }

  /** The content of a string that begins here. */
  #string(): string | undefined {
    const position = this.#at
    if (this.#text[position] !== '"') return undefined
    const string = this.#take(STRING)
    if (string === undefined) throw this.#fatal(position, 'Expected a second " for this one.')
    return this.#unescape(string, position)
  }

  #unescape(string: string, position: number): string {
    return string
      .slice(1, -1)
      .replaceAll(/\\(?:u([0-9a-f]{4})|(.))/gis, (escape, hex, character, offset) => {
        if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
        const decoded = ESCAPES[character]
        if (decoded === undefined)
          this.#error(
            position + 1 + offset,
            `Expected \\", \\\\, \\n, \\r, \\t or \\u and four digits. Write \\\\ for a backslash.`,
          )
        return decoded ?? escape
      })
      .toWellFormed()
  }

  #keyword(keyword: 'AND' | 'OR' | 'NOT'): boolean {
    if (this.#peekWord() !== keyword) return false
    this.#skip(keyword.length)
    return true
  }

  #peekWord(): string | undefined {
    WORD.lastIndex = this.#at
    return WORD.exec(this.#text)?.[0]
  }

  /** What a pattern matches here. Moves behind it. */
  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  /** Moves behind characters and the whitespace after them. */
  #skip(characters: number): void {
    this.#at += characters
    this.#take(SPACE)
  }

  #error(position: number, message: string): undefined {
    this.#errors.push({ position, message })
    if (this.#errors.length >= queryLimits.errorsMax) throw new Unparsable()
    return undefined
  }

  #fatal(position: number, message: string): Unparsable {
    this.#errors.push({ position, message })
    return new Unparsable()
  }
}

const rankOf = (level: string): number => (levels as readonly string[]).indexOf(level.toLowerCase())

/** Whether a text can begin or end a range without quotes. */
const isNumberOrTime = (text: string): boolean => isNumber(text) || periodOf(text) !== undefined
const isLevel = (text: string): boolean => rankOf(text) !== -1

function joined(type: 'and' | 'or', operands: readonly Query[]): Query {
  const [first] = operands
  return operands.length === 1 && first !== undefined ? first : { type, operands }
}
