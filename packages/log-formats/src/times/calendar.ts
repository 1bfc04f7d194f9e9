/** The names that logs use, in English: three letters, then sometimes the rest. */
const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

const monthsByName: ReadonlyMap<string, number> = new Map(
  monthNames.flatMap((name, index): [string, number][] => {
    const title = `${name.charAt(0).toUpperCase()}${name.slice(1)}`
    return [name, title, name.toUpperCase()].map((spelling) => [spelling, index + 1])
  }),
)

/** @param name the first three letters of an English month */
export function monthOf(name: string): number | undefined {
  return monthsByName.get(name)
}

const daysOfMonths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

export function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

export function isDate(year: number, month: number, day: number): boolean {
  const days = month === 2 && isLeapYear(year) ? 29 : daysOfMonths[month - 1]
  return days !== undefined && day >= 1 && day <= days
}

/** A year of two digits. Computers that log are younger than 1970. */
export function fullYear(shortYear: number): number {
  return shortYear < 70 ? 2000 + shortYear : 1900 + shortYear
}

export function twoDigits(number: number): string {
  return number < 10 ? `0${number}` : String(number)
}
