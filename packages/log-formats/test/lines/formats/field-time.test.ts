import { expect, test } from 'vitest'
import { entriesOfText } from '../support.ts'

const time = '2026-11-20T10:00:00Z'
const utc = '2026-11-20T10:00:00+0000'

test.each([
  ['{"level":"info","msg":"a","time_local":"20/Nov/2026:10:00:00 +0000"}', utc],
  ['{"level":"info","msg":"a","time":"[20/Nov/2026:10:00:00 +0000]"}', utc],
  ['{"level":"info","msg":"a","timestamp":"Nov 20, 2026 10:00:00 AM"}', time],
  ['{"level":"info","msg":"a","ts":"Fri Nov 20 10:00:00 2026"}', time],
  ['level=info msg=a time="Nov 20 10:00:00"', time],
  ['level=info msg=a date=2026-11-20 time=10:00:00', time],
  ['level=info msg=a date=2026-11-20 time=10:00:00 tz="-0500"', '2026-11-20T10:00:00-0500'],
])('a time of any form is read from a field: %s', (text, timestamp) => {
  expect(entriesOfText(text)).toMatchObject([{ timestamp, level: 'info', message: 'a' }])
})

test.each([
  ['{"level":"info","msg":"a","time":"20/Nov/2026:10:00:00 +0000","ts":"2026-11-21T10:00:00Z"}'],
  ['{"level":"info","msg":"a","date":"Nov 20 2026 10:00:00","@timestamp":"2026-11-21T10:00:00Z"}'],
])('ISO 8601 in another field is preferred: %s', (text) => {
  expect(entriesOfText(text)).toMatchObject([{ timestamp: '2026-11-21T10:00:00Z' }])
})

test.each(['May be later', '20 Nov 2026 10:00:00 or later', '10', 'Dec', '[2026]'])(
  'other texts are no time: %s',
  (text) => {
    const [entry] = entriesOfText(JSON.stringify({ level: 'info', message: 'a', time: text }))
    expect(entry).not.toHaveProperty('timestamp')
  },
)
