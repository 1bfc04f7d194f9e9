// What SQL and the evaluation in memory share about values: their order, and where the metadata can have them.
import type { Test } from './query.ts'

/** The numbers of JSON, as a pattern of JavaScript and of ClickHouse. */
export const NUMBER_PATTERN = String.raw`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`
const NUMBER = new RegExp(NUMBER_PATTERN)
export const isNumber = (text: string): boolean => NUMBER.test(text)

/** Integers that are compared exactly: a 256-bit integer holds any 76 digits. Other numbers are compared as 64-bit floats. */
export const INTEGER_PATTERN = '^-?[0-9]{1,76}$'
const INTEGER = new RegExp(INTEGER_PATTERN)
export const isInteger = (text: string): boolean => INTEGER.test(text)

const INTEGER_MIN = -(2n ** 63n)
const INTEGER_MAX = 2n ** 64n - 1n

/**
 * The text of a number in JSON: that which ClickHouse's parser writes. A number that this parser does not take, since it is beyond 64 bits or
 * the largest float, keeps its digits.
 */
export function numberText(source: string): string {
  if (/^-?\d+$/.test(source)) {
    const value = BigInt(source)
    return value < INTEGER_MIN || value > INTEGER_MAX ? source : String(value)
  }
  const value = Number(source)
  if (!Number.isFinite(value)) return source
  return Object.is(value, -0) ? '-0' : String(value).replace('e+', 'e')
}

const formsOf = (number: string): string[] =>
  Number(number) === 0 ? [number, '0', '-0'] : [number, numberText(number)]

/** What a value in the metadata may be, to equal one of these texts: 4.0 is also 4, and 0 is also -0. */
export function equalTexts(texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => (isNumber(text) ? formsOf(text) : [text])))]
}

const digitsLimits = {
  /** Fewer digits are in many texts. */
  pointedMin: 3,
  /** Of so many digits, a half is in few texts, and to search for two halves is cheaper than for each form. */
  halvedMin: 6,
} as const

/** Without sign, point, exponent, and zeros at both ends. */
const significantDigits = (number: string): string =>
  number.replaceAll(/[eE].*|[-.]/g, '').replaceAll(/^0+|0+$/g, '')

/**
 * Strings of which the JSON of the metadata has one if it has a value or a name with one of these texts. They reject almost every entry
 * before its JSON is parsed.
 *
 * A text can be written as it is, or with escapes. A number can also have an exponent. Then it has the same digits, with a point between any
 * two of them, so that one half is whole, or, what many texts have, an exponent behind its last digit or a zero.
 *
 * @returns undefined if any JSON is possible
 */
export function needlesOf(texts: readonly string[]): string[] | undefined {
  const needles = new Set(['\\u'])
  for (const text of texts) {
    // A quote, a backslash and a control character are always escaped.
    const [run = ''] = (text.match(/[^"\\\p{Cc}]+/gu) ?? []).toSorted((a, b) => b.length - a.length)
    if (run === '') return undefined
    const digits = isNumber(text) ? significantDigits(text) : ''
    if (digits.length >= digitsLimits.halvedMin) {
      const middle = Math.floor(digits.length / 2)
      needles.add(digits.slice(0, middle)).add(digits.slice(middle))
      continue
    }
    if (digits.length >= digitsLimits.pointedMin) {
      for (let end = 1; end <= digits.length; end += 1)
        needles.add(`${digits.slice(0, end)}.${digits.slice(end)}`.replace(/\.$/, ''))
      continue
    }
    needles.add(run)
    if (run.includes('/')) needles.add('\\/')
    const digit = digits.at(-1)
    if (digit !== undefined) for (const end of ['e', 'E']) needles.add(`${digit}${end}`).add(`0${end}`)
  }
  return [...needles]
}

/** The needles of the metadata that a test of a path needs. */
export function needlesOfTest(path: readonly string[], test: Test): string[] | undefined {
  if (test.type === 'equals') return needlesOf(equalTexts(test.texts))
  if (test.type === 'prefix') return needlesOf([test.text])
  return needlesOf(path.slice(-1))
}

/** The names that a path can have: of nested objects, and the last of them as one name with dots. */
export function namesOf(path: readonly string[]): string[][] {
  return path.map((_, index) => {
    const nested = path.length - 1 - index
    return [...path.slice(0, nested), path.slice(nested).join('.')]
  })
}

/**
 * Texts that contain a text in any case. ASCII letters have any case, as with ClickHouse's `lower`. Others are as they were written, or all
 * in lower case, or all in upper case, or only the first is a capital.
 *
 * @returns with ASCII letters in lower case
 */
export function caseVariants(text: string): string[] {
  const lower = text.toLowerCase()
  const [first = ''] = lower
  const variants = [text, lower, text.toUpperCase(), first.toUpperCase() + lower.slice(first.length)]
  return [
    ...new Set(variants.map((variant) => variant.replaceAll(/[A-Z]+/g, (ascii) => ascii.toLowerCase()))),
  ]
}

/** The characters of logs, the most frequent ones first. */
const BY_FREQUENCY = ' e01torna2sic:d.534l-67u8m9"=/_pfbhgkv[],ywx()j|#z*q@$~;<\'>{}\\!+?&%^`'
/** Too many messages contain a shorter end. */
const END_MIN = 4

/**
 * The end of a text from its rarest character on. ClickHouse looks for the first character of what it searches, and compares the rest at each
 * place that has it: from a frequent one on, a search takes up to four times as long.
 *
 * @param text with ASCII letters in lower case
 */
export function rareEnd(text: string): string {
  let start = 0
  // What is not ASCII has a rank of -1: its first byte is that of most letters of its language.
  const rankAt = (index: number): number => BY_FREQUENCY.indexOf(text.charAt(index))
  for (let index = 1; index <= text.length - END_MIN; index += 1)
    if (rankAt(index) > rankAt(start)) start = index
  return text.slice(start)
}
