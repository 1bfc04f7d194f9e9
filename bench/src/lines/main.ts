// `npm run bench:lines`: how many lines per second one core parses, for each dataset of the accuracy test.
import { readdirSync, readFileSync } from 'node:fs'
import { entriesOf, LineParser, RecordAssembler, timeZoneOf } from '@sluice/log-formats'

const folder = new URL('../../../packages/log-formats/test/lines/fixtures/loghub/', import.meta.url)
const LINES_PER_ROUND = 60_000
/** The best round counts: the others had interruptions. */
const ROUNDS = 15

const defaults = {
  level: 'info',
  service: undefined,
  fallbackService: undefined,
  environment: undefined,
} as const

for (const file of readdirSync(folder).filter((name) => name.endsWith('.tsv'))) {
  const lines = readFileSync(new URL(file, folder), 'utf8')
    .trimEnd()
    .split('\n')
    .map((row) => row.split('\t').slice(2).join('\t'))
  const parsing = best(() => parseRound(lines))
  const converting = best(() => convertRound(lines))
  process.stdout.write(
    `${file.replace('.tsv', '').padEnd(10)} ${format(parsing)} parsed, ${format(converting)} as entries\n`,
  )
}

function best(round: () => void): number {
  let rate = 0
  for (let count = 0; count < ROUNDS; count += 1) {
    const startedAtMs = performance.now()
    round()
    rate = Math.max(rate, LINES_PER_ROUND / (performance.now() - startedAtMs))
  }
  return rate * 1_000
}

/** Time, level and what else is in the prefix. */
function parseRound(lines: readonly string[]): void {
  const parser = newParser()
  for (let count = 0; count < LINES_PER_ROUND; count += lines.length)
    for (const line of lines) parser.parse(line)
}

/** All of what `sluice send` does with a line before it is sent. */
function convertRound(lines: readonly string[]): void {
  const records = new RecordAssembler(newParser())
  let number = 0
  while (number < LINES_PER_ROUND) {
    for (const line of lines) {
      const record = records.push(line, (number += 1))
      if (record === undefined) continue
      for (const made of entriesOf(record, defaults)) if ('entry' in made) JSON.stringify(made.entry)
    }
  }
}

function newParser(): LineParser {
  return new LineParser({ zone: timeZoneOf('UTC'), nowMs: Date.now, parseJson: JSON.parse })
}

function format(perSecond: number): string {
  return `${Math.round(perSecond).toLocaleString('en-US').padStart(9)} lines/s`
}
