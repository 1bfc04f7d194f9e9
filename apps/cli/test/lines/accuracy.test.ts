import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseLine } from '../../src/lines/formats.ts'
import { times } from './support.ts'

const folder = new URL('fixtures/loghub/', import.meta.url)
const sets = readdirSync(folder).filter((file) => file.endsWith('.tsv'))

test.each(sets)('times and levels of %s are correct', (file) => {
  const rows = readFileSync(new URL(file, folder), 'utf8').trimEnd().split('\n')
  expect(rows).toHaveLength(60)
  for (const row of rows) {
    const [time, level, ...line] = row.split('\t')
    const read = parseLine(line.join('\t'), times)
    expect([read?.timestamp, read?.level ?? '-', line]).toEqual([time, level, line])
  }
})
