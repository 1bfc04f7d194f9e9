/**
 * The grammar of JSON (RFC 8259) as a state machine over bytes. Each state is a place between two bytes of a text. The table gives for
 * each state and byte the next state, or an event that `JsonScanner` handles.
 */
export const states = {
  value: 0,
  elementOrEnd: 1,
  nameOrEnd: 2,
  name: 3,
  colon: 4,
  afterElement: 5,
  afterMember: 6,
  end: 7,
  string: 8,
  escape: 9,
  hex1: 10,
  hex2: 11,
  hex3: 12,
  hex4: 13,
  minus: 14,
  zero: 15,
  integer: 16,
  point: 17,
  fraction: 18,
  exponent: 19,
  exponentSign: 20,
  exponentDigits: 21,
  t: 22,
  tr: 23,
  tru: 24,
  f: 25,
  fa: 26,
  fal: 27,
  fals: 28,
  n: 29,
  nu: 30,
  nul: 31,
} as const
export type State = (typeof states)[keyof typeof states]

/** The values of the table that are not states. */
export const events = {
  invalid: 32,
  blank: 33,
  openObject: 34,
  openArray: 35,
  close: 36,
  beginName: 37,
  beginString: 38,
  endString: 39,
  backslash: 40,
  unicodeEscape: 41,
  beginNumber: 42,
  /** The end of the part of a number before its point or exponent. */
  point: 43,
  beginExponent: 44,
  /** The byte after a number. It is not part of the number, and is read once more. */
  endNumber: 45,
  beginLiteral: 46,
  endLiteral: 47,
} as const

/** The smallest event. */
export const FIRST_EVENT = events.invalid

/** What must follow in each state, for the messages of errors. */
export const expectations: Readonly<Record<State, string>> = {
  [states.value]: 'a value',
  [states.elementOrEnd]: 'a value or "]"',
  [states.nameOrEnd]: 'a name in double quotes or "}"',
  [states.name]: 'a name in double quotes',
  [states.colon]: '":"',
  [states.afterElement]: '"," or "]"',
  [states.afterMember]: '"," or "}"',
  [states.end]: 'the end of the text',
  [states.string]: 'the rest of a string, whose control characters must be escaped',
  [states.escape]: 'one of "\\/bfnrtu after the backslash',
  [states.hex1]: 'four hexadecimal digits after \\u',
  [states.hex2]: 'four hexadecimal digits after \\u',
  [states.hex3]: 'four hexadecimal digits after \\u',
  [states.hex4]: 'four hexadecimal digits after \\u',
  [states.minus]: 'a digit after the minus sign',
  [states.zero]: 'the end of a number, which must not have leading zeros',
  [states.integer]: 'the rest of a number',
  [states.point]: 'a digit after the decimal point',
  [states.fraction]: 'the rest of a number',
  [states.exponent]: 'a digit in the exponent',
  [states.exponentSign]: 'a digit in the exponent',
  [states.exponentDigits]: 'the rest of a number',
  [states.t]: 'true',
  [states.tr]: 'true',
  [states.tru]: 'true',
  [states.f]: 'false',
  [states.fa]: 'false',
  [states.fal]: 'false',
  [states.fals]: 'false',
  [states.n]: 'null',
  [states.nu]: 'null',
  [states.nul]: 'null',
}

const STATES = Object.keys(states).length
const BYTES = 256
if (STATES > FIRST_EVENT) throw new Error('the numbers of states and events overlap')

/** For a state and a byte, at `(state << 8) | byte`: the next state or an event. */
export const transitions: Uint8Array = makeTransitions()

function makeTransitions(): Uint8Array {
  const table = new Uint8Array(STATES * BYTES).fill(events.invalid)
  const on = (from: readonly State[], bytes: string, to: number): void => {
    for (const state of from) for (const byte of Buffer.from(bytes)) table[(state << 8) | byte] = to
  }
  const s = states

  const betweenTokens = [
    s.value,
    s.elementOrEnd,
    s.nameOrEnd,
    s.name,
    s.colon,
    s.afterElement,
    s.afterMember,
    s.end,
  ]
  on(betweenTokens, ' \t\r\n', events.blank)
  const values = [s.value, s.elementOrEnd]
  on(values, '{', events.openObject)
  on(values, '[', events.openArray)
  on(values, '"', events.beginString)
  on(values, '-0123456789', events.beginNumber)
  on(values, 'tfn', events.beginLiteral)
  on([s.elementOrEnd, s.afterElement], ']', events.close)
  on([s.nameOrEnd, s.afterMember], '}', events.close)
  on([s.nameOrEnd, s.name], '"', events.beginName)
  on([s.colon], ':', s.value)
  on([s.afterElement], ',', s.value)
  on([s.afterMember], ',', s.name)

  // Control characters must be escaped. Bytes above ASCII are parts of characters; that they are UTF-8 is checked before.
  table.fill(s.string, (s.string << 8) | 0x20, (s.string << 8) | 0xff)
  table[(s.string << 8) | 0xff] = s.string
  on([s.string], '"', events.endString)
  on([s.string], '\\', events.backslash)
  on([s.escape], '"\\/bfnrt', s.string)
  on([s.escape], 'u', events.unicodeEscape)
  const hex = [s.hex1, s.hex2, s.hex3, s.hex4, s.string] as const
  for (const [i, from] of hex.slice(0, 4).entries()) {
    on([from], '0123456789abcdefABCDEF', hex[i + 1] ?? s.string)
  }

  const numberEnds = [s.zero, s.integer, s.fraction, s.exponentDigits]
  on(numberEnds, ' \t\r\n,]}', events.endNumber)
  on([s.minus], '0', s.zero)
  on([s.minus], '123456789', s.integer)
  on([s.integer], '0123456789', s.integer)
  on([s.zero, s.integer], '.', events.point)
  on([s.point, s.fraction], '0123456789', s.fraction)
  on([s.zero, s.integer, s.fraction], 'eE', events.beginExponent)
  on([s.exponent], '+-', s.exponentSign)
  on([s.exponent, s.exponentSign, s.exponentDigits], '0123456789', s.exponentDigits)

  on([s.t], 'r', s.tr)
  on([s.tr], 'u', s.tru)
  on([s.f], 'a', s.fa)
  on([s.fa], 'l', s.fal)
  on([s.fal], 's', s.fals)
  on([s.n], 'u', s.nu)
  on([s.nu], 'l', s.nul)
  on([s.tru, s.fals], 'e', events.endLiteral)
  on([s.nul], 'l', events.endLiteral)
  return table
}
