/**
 * ISO 8601, and what loggers make of it: a space or an underscore in place of the T, slashes or nothing between the parts
 * of the date, a comma before the fraction, `UTC` or an offset after a space.
 */
const DATE_TIME =
  /^(\d{4})([-/.]?)(\d\d)\2(\d\d)[Tt _](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,30}))?)?(?: ?([Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?))?$/

/** What the API reads: the text of such a time is left as it is. */
const CONTRACT_FORM = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:[.,]\d{1,30})?)?(?:[Zz]|[+-]\d\d(?::?\d\d)?)?$/

/** Neither ISO 8601 nor a close relative is longer. */
const TIME_CHARACTERS_MAX = 70

/** The time as the contract's ISO 8601, with all digits and its offset; undefined if the text is not such a time. */
export function timeOfIso(text: string): string | undefined {
  if (text.length > TIME_CHARACTERS_MAX) return undefined
  const match = DATE_TIME.exec(text)
  if (match === null) return undefined
  const [, year = '', , month = '', day = '', hour = '', minute = '', second = '00', fraction, zone = ''] =
    match
  if (!isDate(+year, +month, +day) || +hour > 23 || +minute > 59 || +second > 60) return undefined
  const offset = zone === 'UTC' || zone === 'GMT' ? 'Z' : zone
  if (!isOffset(offset) || !isInYearsOfContract([+year, +month, +day, +hour, +minute, +second], offset))
    return undefined
  if (CONTRACT_FORM.test(text)) return text
  const point = fraction === undefined ? '' : `.${fraction}`
  return `${year}-${month}-${day}T${hour}:${minute}:${second}${point}${offset}`
}

function isOffset(offset: string): boolean {
  return offset.length < 2 || (+offset.slice(1, 3) <= 23 && +offset.slice(3).replace(':', '') <= 59)
}

function isDate(year: number, month: number, day: number): boolean {
  if (month < 1 || month > 12 || day < 1) return false
  return day <= new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
}

/** Whether the time is in the years 1970 to 2261 in UTC. Only the offset of a time next to their ends matters. */
function isInYearsOfContract(
  [year, month, day, hour, minute, second]: readonly [number, number, number, number, number, number],
  offset: string,
): boolean {
  if (year > 1970 && year < 2261) return true
  if (year < 1969 || year > 2262) return false
  const sign = offset.startsWith('-') ? -1 : 1
  const ahead = offset.length < 2 ? 0 : sign * (+offset.slice(1, 3) * 60 + +offset.slice(3).replace(':', ''))
  const utcYear = new Date(Date.UTC(year, month - 1, day, hour, minute - ahead, second)).getUTCFullYear()
  return utcYear >= 1970 && utcYear <= 2261
}
