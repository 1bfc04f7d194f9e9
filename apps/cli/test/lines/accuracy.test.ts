import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseLine } from '../../src/lines/formats.ts'
import { TimeReader, timeZoneOf } from '../../src/lines/times.ts'
import { nowMs } from './support.ts'

const folder = new URL('fixtures/loghub/', import.meta.url)
const sets = readdirSync(folder).filter((file) => file.endsWith('.tsv'))
const options = { times: new TimeReader(timeZoneOf('UTC'), () => nowMs), parseJson: JSON.parse }

test('there are four datasets', () => {
  expect(sets).toHaveLength(4)
})

test.each(sets)('times and levels of %s are correct', (file) => {
  const rows = readFileSync(new URL(file, folder), 'utf8').trimEnd().split('\n')
  expect(rows).toHaveLength(60)
  for (const row of rows) {
    const [time, level, ...line] = row.split('\t')
    const read = parseLine(line.join('\t'), options)
    expect([read?.timestamp, read?.level ?? '-', line]).toEqual([time, level, line])
  }
})
