import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { LineParser, timeZoneOf } from '../../src/index.ts'

const folder = new URL('fixtures/loghub/', import.meta.url)
/** The day for which the times without a year are labelled. */
const nowMs = Date.UTC(2026, 10, 23, 17)

const sets = readdirSync(folder).filter((file) => file.endsWith('.tsv'))

test('there are six datasets', () => {
  expect(sets).toHaveLength(6)
})

test.each(sets)('times and levels of %s are correct', (file) => {
  const parser = new LineParser({ zone: timeZoneOf('UTC'), nowMs: () => nowMs, parseJson: JSON.parse })
  const labelled = readFileSync(new URL(file, folder), 'utf8')
    .trimEnd()
    .split('\n')
    .map((row) => {
      const [time = '', level = '', ...line] = row.split('\t')
      return { time, level: level === '-' ? undefined : level, line: line.join('\t') }
    })
  const read = labelled.map(({ line }) => parser.parse(line))
  const times = labelled.filter(({ time }, index) => read[index]?.timestamp === time).length
  const levels = labelled.filter(
    ({ level }, index) => read[index] !== undefined && read[index].level === level,
  )
  const percent = (count: number): number => (100 * count) / labelled.length
  process.stdout.write(
    `${file}: ${percent(times).toFixed(1)} % of times, ${percent(levels.length).toFixed(1)} % of levels, ${labelled.length} lines\n`,
  )
  expect(labelled).toHaveLength(60)
  expect(percent(times)).toBeGreaterThanOrEqual(99)
  expect(percent(levels.length)).toBeGreaterThanOrEqual(99)
})
