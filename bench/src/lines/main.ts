// `npm run bench:lines`: how many lines per second one core makes entries of, for each dataset of the accuracy test.
import { readdirSync, readFileSync } from 'node:fs'
import { SourceEntries } from '../../../apps/cli/src/lines/entries.ts'
import { timeZoneOf } from '../../../apps/cli/src/lines/times.ts'

const folder = new URL('../../../apps/cli/test/lines/fixtures/loghub/', import.meta.url)
const LINES_PER_ROUND = 60_000
/** The best round counts: the others had interruptions. */
const ROUNDS = 15

const options = {
  defaults: { level: 'info', service: undefined, fallbackService: undefined, environment: undefined },
  isRaw: false,
  zone: timeZoneOf('UTC'),
  nowMs: Date.now,
} as const

for (const file of readdirSync(folder).filter((name) => name.endsWith('.tsv'))) {
  const lines = readFileSync(new URL(file, folder), 'utf8')
    .trimEnd()
    .split('\n')
    .map((row) => row.split('\t').slice(2).join('\t'))
  let linesPerMs = 0
  for (let count = 0; count < ROUNDS; count += 1) linesPerMs = Math.max(linesPerMs, round(lines))
  const perSecond = Math.round(linesPerMs * 1_000).toLocaleString('en-US')
  process.stdout.write(`${file.replace('.tsv', '').padEnd(10)} ${perSecond.padStart(9)} lines/s\n`)
}

/** All of what `sluice send` does with a line before it is sent. @returns lines per millisecond */
function round(lines: readonly string[]): number {
  const entries = new SourceEntries(options)
  const startedAtMs = performance.now()
  let number = 0
  while (number < LINES_PER_ROUND) for (const line of lines) entries.push(line, (number += 1))
  return number / (performance.now() - startedAtMs)
}
