/** A value of JSON, with its source. As for JSON.parse, the first of several members with a name has its place, and the last its value. */
export type Value =
  | { readonly kind: 'array'; readonly elements: readonly Value[] }
  | { readonly kind: 'object'; readonly members: Map<string, { rawName: string; value: Value }> }
  | { readonly kind: 'string'; readonly raw: string; readonly string: string }
  | { readonly kind: 'number' | 'word'; readonly raw: string }

/** The members of an object, by their names. */
export type Members = Extract<Value, { kind: 'object' }>['members']

/** Reads a text, or says where it is not JSON. */
export function parseText(text: string): Value | string {
  const reader = new Reader(text)
  try {
    reader.skip()
    const value = reader.value()
    reader.skip()
    if (reader.at < text.length) reader.fail()
    return value
  } catch (error) {
    if (error instanceof Fault) return error.message
    throw error
  }
}

/** Reads the values of a text one after another. The last is why the rest is not JSON, if it is not. */
export function* parseValues(text: string): Generator<Value | string> {
  let rest = text.replace(BLANKS, '')
  while (rest !== '') {
    const reader = new Reader(rest)
    try {
      yield reader.value()
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      yield error.message
      return
    }
    rest = rest.slice(reader.at).replace(BLANKS, '')
  }
}
const BLANKS = /^[ \t\r\n]*/

/** The value as JSON.parse would return it, with a number for each number. */
export function toValue(value: Value): unknown {
  if (value.kind === 'string') return value.string
  if (value.kind === 'array') return value.elements.map(toValue)
  if (value.kind === 'object')
    return Object.fromEntries([...value.members].map(([name, member]) => [name, toValue(member.value)]))
  // JavaScript's numbers have fewer digits, and do not tell whether they had an exponent.
  return value.raw.replace(/\D/g, '').length > 15 || /\de/i.test(value.raw)
    ? json.rawJSON(value.raw)
    : JSON.parse(value.raw)
}
const json = JSON as unknown as { rawJSON(text: string): unknown }

class Fault extends Error {}

class Reader {
  readonly #text: string
  at = 0

  constructor(text: string) {
    this.#text = text
  }

  fail(at = this.at): never {
    const lines = this.#text.slice(0, at).split('\n')
    const column = Array.from(lines.at(-1) ?? '').length + 1
    const [character] = this.#text.slice(at)[Symbol.iterator]()
    const found =
      character === undefined
        ? 'the text ends too early'
        : `unexpected ${character === '"' ? `'"'` : JSON.stringify(character)}`
    throw new Fault(`${found} at line ${lines.length}, column ${column}`)
  }

  skip(): void {
    this.at += /^[ \t\r\n]*/.exec(this.#text.slice(this.at))?.[0].length ?? 0
  }

  #take(character: string): boolean {
    if (this.#text[this.at] !== character) return false
    this.at += 1
    return true
  }

  value(): Value {
    const first = this.#text[this.at] ?? ''
    if (first === '{') return this.#object()
    if (first === '[') return this.#array()
    if (first === '"') return this.#string()
    if (/[-\d]/.test(first)) return this.#number()
    const word = ['true', 'false', 'null'].find((each) => each.startsWith(first) && first !== '')
    if (word === undefined) this.fail()
    for (const letter of word) if (!this.#take(letter)) this.fail()
    return { kind: 'word', raw: word }
  }

  #object(): Value {
    const members = new Map<string, { rawName: string; value: Value }>()
    this.at += 1
    this.skip()
    if (this.#take('}')) return { kind: 'object', members }
    for (;;) {
      if (this.#text[this.at] !== '"') this.fail()
      const { string: name, raw: rawName } = this.#string()
      this.skip()
      if (!this.#take(':')) this.fail()
      this.skip()
      const value = this.value()
      const earlier = members.get(name)
      if (earlier === undefined) members.set(name, { rawName, value })
      else earlier.value = value
      this.skip()
      if (this.#take('}')) return { kind: 'object', members }
      if (!this.#take(',')) this.fail()
      this.skip()
    }
  }

  #array(): Value {
    const elements: Value[] = []
    this.at += 1
    this.skip()
    if (this.#take(']')) return { kind: 'array', elements }
    for (;;) {
      elements.push(this.value())
      this.skip()
      if (this.#take(']')) return { kind: 'array', elements }
      if (!this.#take(',')) this.fail()
      this.skip()
    }
  }

  #string(): Extract<Value, { kind: 'string' }> {
    const start = this.at
    this.at += 1
    for (;;) {
      const character = this.#text[this.at] ?? ''
      if (character < ' ') this.fail()
      this.at += 1
      if (character === '"') break
      if (character === '\\') this.#escape()
    }
    const raw = this.#text.slice(start, this.at)
    return { kind: 'string', raw, string: JSON.parse(raw) as string }
  }

  #escape(): void {
    if (!this.#take('u')) {
      if (!/["\\/bfnrt]/.test(this.#text[this.at] ?? '')) this.fail()
      this.at += 1
    } else for (let i = 0; i < 4; i += 1) this.#digit(/[\da-f]/i)
  }

  #digit(digits = /\d/): void {
    if (!digits.test(this.#text[this.at] ?? '')) this.fail()
    this.at += 1
  }

  #digits(): void {
    this.#digit()
    while (/\d/.test(this.#text[this.at] ?? '')) this.at += 1
  }

  #number(): Value {
    const start = this.at
    this.#take('-')
    if (!this.#take('0')) this.#digits()
    else if (/\d/.test(this.#text[this.at] ?? '')) this.fail()
    if (this.#take('.')) this.#digits()
    if (/[eE]/.test(this.#text[this.at] ?? '')) {
      this.at += 1
      if (!this.#take('+')) this.#take('-')
      this.#digits()
    }
    return { kind: 'number', raw: this.#text.slice(start, this.at) }
  }
}
