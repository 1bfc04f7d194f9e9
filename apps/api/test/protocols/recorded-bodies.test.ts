import { readBody, recordedBodies, recordedEntries } from '@sluice/harness/recorded-bodies'
import { expect, it } from 'vitest'
import { sharedTestApi, storedRows } from '../support/shared-api.ts'

const api = sharedTestApi()

it.each(recordedBodies)('stores the entries of $name', async ({ name, url, contentType, stored }) => {
  const headers = { 'content-type': contentType, 'dd-api-key': api.key }
  const response = await api.post(readBody(name), { url, headers })
  expect(response.statusCode).toBeLessThan(300)
  const expected = name.startsWith('python-utf8')
    ? (JSON.parse(readBody('python-utf8').toString()) as typeof recordedEntries)
    : recordedEntries
  // Loki's streams are not in the order of time.
  const rows = storedRows(api).toSorted((a, b) => timeOf(a) - timeOf(b))
  const values = rows.map((row) => ({
    message: stored.lines === true ? messageOf(String(row['message'])) : row['message'],
    level: row['level'],
    timeMs: timeOf(row),
    service: row['service'],
  }))
  expect(values).toEqual(
    expected.map(({ message, level, timestamp, service }) => ({
      message,
      level: stored.level ?? level,
      timeMs: Date.parse(timestamp),
      service: stored.service ?? service,
    })),
  )
})

/** In ms, rounded: zap writes seconds as a number with an error in its last digits. */
function timeOf(row: Readonly<Record<string, unknown>>): number {
  const [seconds = '', fraction = '0Z'] = String(row['timestamp']).split('.')
  return Date.parse(`${seconds.slice(0, 19)}Z`) + Math.round(Number.parseFloat(`0.${fraction}`) * 1_000)
}

/** The message in a line of JSON, which Loki stores as it is. */
function messageOf(line: string): unknown {
  const { message, msg = message } = JSON.parse(line) as { message?: unknown; msg?: unknown }
  return msg
}
