export type Fields = Record<string, unknown>

/** An integer that a JavaScript number may not hold exactly has at least 16 digits. */
const MANY_DIGITS = /\d{16}/
/** The texts and the numbers of valid JSON. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g
const LONG_INTEGER = /^-?\d{16,}$/
/** A longer line is not searched for integers: the cost of the search must not depend on what an application logs. */
const SEARCHED_CHARACTERS_MAX = 262_144

/** The object of a line. Undefined if the line is no JSON object. */
export function parseLine(line: string): Fields | undefined {
  // Everything that pino writes is an object.
  if (!line.startsWith('{')) return undefined
  try {
    return JSON.parse(hasLongInteger(line) ? quoteLongIntegers(line) : line) as Fields
  } catch {
    return undefined
  }
}

function hasLongInteger(line: string): boolean {
  return line.length <= SEARCHED_CHARACTERS_MAX && MANY_DIGITS.test(line)
}

/** Integers that would lose digits become texts. pino writes a BigInt as such a number. */
function quoteLongIntegers(json: string): string {
  return json.replaceAll(TOKENS, (token) =>
    LONG_INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token,
  )
}
