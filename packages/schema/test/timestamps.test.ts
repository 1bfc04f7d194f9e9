import { describe, expect, it } from 'vitest'
import { rowColumns, startRows } from '../src/rows.ts'
import { RowScanner } from '../src/scanner/row-scanner.ts'
import { parseTimestamp, toClickHouseTime } from '../src/timestamps.ts'

const valid: readonly (readonly [why: string, text: string, stored: string])[] = [
  ['UTC as Z', '2026-11-20T22:43:01Z', '2026-11-20 22:43:01.000000'],
  ['UTC as a small z', '2026-11-20T22:43:01z', '2026-11-20 22:43:01.000000'],
  ['a small t', '2026-11-20t22:43:01Z', '2026-11-20 22:43:01.000000'],
  ['no offset, which is UTC', '2026-11-20T22:43:01', '2026-11-20 22:43:01.000000'],
  ['no offset and a fraction', '2026-11-20T22:43:01.5', '2026-11-20 22:43:01.500000'],
  ['no seconds', '2026-11-20T22:43Z', '2026-11-20 22:43:00.000000'],
  ['no seconds and no offset', '2026-11-20T22:43', '2026-11-20 22:43:00.000000'],
  ['no seconds and an offset', '2026-11-20T22:43+01:00', '2026-11-20 21:43:00.000000'],
  ['one digit of fraction', '2026-11-20T22:43:01.1Z', '2026-11-20 22:43:01.100000'],
  ['milliseconds', '2026-11-20T22:43:01.123Z', '2026-11-20 22:43:01.123000'],
  ['microseconds', '2026-11-20T22:43:01.123456Z', '2026-11-20 22:43:01.123456'],
  ['nanoseconds, cut and not rounded', '2026-11-20T22:43:01.999999999Z', '2026-11-20 22:43:01.999999'],
  ['leading zeros of a fraction', '2026-11-20T22:43:01.000001Z', '2026-11-20 22:43:01.000001'],
  ['a fraction after a comma', '2026-11-20T22:43:01,25Z', '2026-11-20 22:43:01.250000'],
  ['30 digits of fraction', `2026-11-20T22:43:01.${'7'.repeat(30)}Z`, '2026-11-20 22:43:01.777777'],
  ['an offset ahead of UTC', '2026-11-20T22:43:01+01:00', '2026-11-20 21:43:01.000000'],
  ['an offset behind UTC', '2026-11-20T22:43:01-05:00', '2026-11-21 03:43:01.000000'],
  ['an offset of half an hour', '2026-11-20T22:43:01+05:30', '2026-11-20 17:13:01.000000'],
  ['an offset of a quarter behind', '2026-11-20T00:00:00-00:45', '2026-11-20 00:45:00.000000'],
  ['an offset without its colon', '2026-11-20T22:43:01+0530', '2026-11-20 17:13:01.000000'],
  ['an offset of hours alone', '2026-11-20T22:43:01+05', '2026-11-20 17:43:01.000000'],
  ['an offset of zero', '2026-11-20T22:43:01+00:00', '2026-11-20 22:43:01.000000'],
  ['an offset of minus zero', '2026-11-20T22:43:01-00:00', '2026-11-20 22:43:01.000000'],
  ['the widest offset', '2026-11-20T22:43:01+23:59', '2026-11-19 22:44:01.000000'],
  ['an offset with a fraction', '2026-11-20T22:43:01.123456+01:00', '2026-11-20 21:43:01.123456'],
  ['an offset over the end of a year', '2026-12-31T23:30:00-01:00', '2027-01-01 00:30:00.000000'],
  ['an offset back over a leap day', '2028-03-01T00:30:00+01:00', '2028-02-29 23:30:00.000000'],
  ['a leap day', '2028-02-29T00:00:00Z', '2028-02-29 00:00:00.000000'],
  ['the leap day of a year that 400 divides', '2000-02-29T00:00:00Z', '2000-02-29 00:00:00.000000'],
  ['a leap second', '2016-12-31T23:59:60Z', '2017-01-01 00:00:00.000000'],
  ['a leap second with a fraction', '2016-12-31T23:59:60.5Z', '2017-01-01 00:00:00.500000'],
  ['a leap second without an offset', '2016-12-31T23:59:60', '2017-01-01 00:00:00.000000'],
  ['a leap second with an offset', '2017-01-01T08:59:60+09:00', '2017-01-01 00:00:00.000000'],
  ['the first moment', '1970-01-01T00:00:00Z', '1970-01-01 00:00:00.000000'],
  ['a local 1969 that is 1970 in UTC', '1969-12-31T23:30:00-01:00', '1970-01-01 00:30:00.000000'],
  ['the last moment', '2261-12-31T23:59:59.999999Z', '2261-12-31 23:59:59.999999'],
  ['a local 2262 that is 2261 in UTC', '2262-01-01T00:30:00+01:00', '2261-12-31 23:30:00.000000'],
  ['the 31st of a month of 31 days', '2026-07-31T12:00:00Z', '2026-07-31 12:00:00.000000'],
  ['the 30th of a month of 30 days', '2026-04-30T12:00:00Z', '2026-04-30 12:00:00.000000'],
]

const invalid: readonly (readonly [why: string, text: string])[] = [
  ['nothing', ''],
  ['a word', 'yesterday'],
  ['a date alone', '2026-11-20'],
  ['a time alone', '22:43:01Z'],
  ['hours alone', '2026-11-20T22Z'],
  ['a blank for the T', '2026-11-20 22:43:01Z'],
  ['RFC 2822', 'Fri, 20 Nov 2026 22:43:01 +0000'],
  ['seconds of the epoch', '1795214581'],
  ['milliseconds of the epoch', '1795214581123'],
  ['the basic format', '20261120T224301Z'],
  ['a week date', '2026-W47-5T22:43:01Z'],
  ['an ordinal date', '2026-324T22:43:01Z'],
  ['a duration', 'P1DT2H'],
  ['an interval', '2026-11-20T22:43:01Z/2026-11-21T22:43:01Z'],
  ['a year of two digits', '26-11-20T22:43:01Z'],
  ['a year of five digits', '12026-11-20T22:43:01Z'],
  ['an expanded year', '+002026-11-20T22:43:01Z'],
  ['the year 0', '0000-01-01T00:00:00Z'],
  ['the year 70', '0070-01-01T00:00:00+01:00'],
  ['month 0', '2026-00-20T22:43:01Z'],
  ['month 13', '2026-13-20T22:43:01Z'],
  ['day 0', '2026-11-00T22:43:01Z'],
  ['day 32', '2026-07-32T22:43:01Z'],
  ['the 31st of a month of 30 days', '2026-11-31T22:43:01Z'],
  ['the 30th of February', '2028-02-30T22:43:01Z'],
  ['a leap day in a common year', '2026-02-29T22:43:01Z'],
  ['a leap day in a common century', '2100-02-29T22:43:01Z'],
  ['hour 24', '2026-11-20T24:00:00Z'],
  ['minute 60', '2026-11-20T22:60:01Z'],
  ['second 61', '2026-11-20T22:43:61Z'],
  ['one digit of month', '2026-1-20T22:43:01Z'],
  ['one digit of second', '2026-11-20T22:43:1Z'],
  ['a fraction without digits', '2026-11-20T22:43:01.Z'],
  ['31 digits of fraction', `2026-11-20T22:43:01.${'7'.repeat(31)}Z`],
  ['a fraction of minutes', '2026-11-20T22:43.5Z'],
  ['an offset of 24 hours', '2026-11-20T22:43:01+24:00'],
  ['an offset of 60 minutes', '2026-11-20T22:43:01+01:60'],
  ['an offset of one digit', '2026-11-20T22:43:01+1'],
  ['an offset with a minus sign of print', '2026-11-20T22:43:01\u221201:00'],
  ['two offsets', '2026-11-20T22:43:01Z+01:00'],
  ['a named zone', '2026-11-20T22:43:01 UTC'],
  ['a bracketed zone', '2026-11-20T22:43:01+01:00[Europe/Berlin]'],
  ['a blank before', ' 2026-11-20T22:43:01Z'],
  ['a blank after', '2026-11-20T22:43:01Z '],
  ['a newline after', '2026-11-20T22:43:01Z\n'],
  ['a NUL after', '2026-11-20T22:43:01Z\0'],
  ['Arabic digits', '\u0662\u0660\u0662\u0666-11-20T22:43:01Z'],
  ['full-width digits', '\uff12\uff10\uff12\uff16-11-20T22:43:01Z'],
  ['a sign in a number', '2026-11-20T22:+3:01Z'],
  ['hexadecimal', '2026-11-20T0x:43:01Z'],
  ['an attempt at SQL', "2026-11-20T22:43:01'; DROP TABLE logs"],
  ['1969', '1969-12-31T23:59:59Z'],
  ['1969 without an offset', '1969-12-31T23:59:59.999999'],
  ['a local 1970 that is 1969 in UTC', '1970-01-01T00:30:00+01:00'],
  ['2262', '2262-01-01T00:00:00Z'],
  ['a local 2261 that is 2262 in UTC', '2261-12-31T23:30:00-01:00'],
  ['a leap second that ends 2261', '2261-12-31T23:59:60Z'],
  ['9999', '9999-12-31T23:59:59Z'],
  ['100,000 digits', '1'.repeat(100_000)],
]

/**
 * What ClickHouse stores for a text that it is given: it reads a `T` as a blank, takes or leaves a `Z`, and cuts the
 * fraction to the column's six digits.
 */
function asStored(text: string | undefined): string | undefined {
  const [, date, time, fraction = ''] =
    /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,10}))?Z?$/.exec(text ?? '') ?? []
  if (date === undefined || time === undefined) return text
  return `${date} ${time}.${fraction.padEnd(6, '0').slice(0, 6)}`
}

describe('parseTimestamp', () => {
  it.each(valid)('reads %s', (_why, text, stored) => {
    expect(asStored(parseTimestamp(text))).toBe(stored)
  })

  it.each(invalid)('refuses %s', (_why, text) => {
    expect(parseTimestamp(text)).toBeUndefined()
  })

  it('agrees with the calendar on each day of a common, a leap and a century year', () => {
    const wrong: string[] = []
    for (const year of [2026, 2028, 2000, 2100]) {
      for (let month = 1; month <= 12; month += 1) {
        for (let day = 1; day <= 31; day += 1) {
          const date = `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`
          const exists = new Date(Date.UTC(year, month - 1, day)).getUTCMonth() === month - 1
          if ((parseTimestamp(`${date}T12:00:00Z`) !== undefined) !== exists) wrong.push(date)
        }
      }
    }
    expect(wrong).toEqual([])
  })
})

describe('toClickHouseTime', () => {
  it('keeps the milliseconds, without the T and the Z', () => {
    expect(toClickHouseTime(Date.UTC(2026, 10, 20, 22, 43, 1, 7))).toBe('2026-11-20 22:43:01.007')
  })
})

describe('the scanner, which reads the usual timestamps by itself', () => {
  const scanner = new RowScanner({ write: () => undefined })
  const start = startRows({ projectId: 'demo', retentionDays: 30, receivedAtMs: 0 })
  const scan = (text: string): string | undefined => {
    const body = JSON.stringify({ level: 'info', message: '', timestamp: text })
    return scanner.scan(Buffer.from(body), start, false)?.text.toString().split('\t')[
      rowColumns.indexOf('timestamp')
    ]
  }

  it.each([...valid, ...invalid].map(([why, text]) => [why, text] as const))(
    'gives what parseTimestamp gives for %s',
    (_why, text) => {
      expect(scan(text)).toBe(parseTimestamp(text))
    },
  )

  it('… and with any character in any place of one', () => {
    const wrong: string[] = []
    for (const usual of ['2026-11-20T22:43:01', '1999-02-28T19:59:59.123456789Z', '2261-12-08T23:00:00.1']) {
      for (let at = 0; at < usual.length; at += 1) {
        for (const put of ['', '0', '1', '2', '3', '6', '9', '-', ':', '.', 'T', 'Z', 'x']) {
          const text = `${usual.slice(0, at)}${put}${usual.slice(at + 1)}`
          if (scan(text) !== parseTimestamp(text)) wrong.push(text)
        }
      }
    }
    expect(wrong).toEqual([])
  })
})
