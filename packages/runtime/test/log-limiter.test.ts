import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { LogLimiter, logLimits } from '../src/log-limiter.ts'

const { intervalMs, kindsMax, linesMax } = logLimits
const WARNINGS_MAX = linesMax['warn'] ?? 0

let limiter: LogLimiter
/** What was written, as `MESSAGE`, or `MESSAGE × N`. */
let written: string[]

beforeEach(() => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  written = []
  limiter = new LogLimiter((ms, run) => void setTimeout(run, ms))
})

function log(message: string, { level = 'warn', fields = {}, times = 1 } = {}): void {
  for (let i = 0; i < times; i += 1) {
    const report = (repeated: number): void => void written.push(`${message} × ${repeated}`)
    if (limiter.admits(level, message, fields, report)) written.push(message)
  }
}

it('writes lines of one kind up to the limit of an interval, and counts the others in one line at its end or a flush', () => {
  log('a', { times: WARNINGS_MAX + 7 })
  const lines = Array.from({ length: WARNINGS_MAX }, () => 'a')
  expect(written).toEqual(lines)
  vi.advanceTimersByTime(intervalMs)
  expect(written).toEqual([...lines, 'a × 7'])
  log('a', { times: WARNINGS_MAX + 4 })
  // No limit.
  log('b', { level: 'fatal', times: 1_000 })
  expect(written.filter((line) => line === 'b')).toHaveLength(1_000)
  written = []
  limiter.flush()
  vi.advanceTimersByTime(intervalMs)
  expect(written).toEqual(['a × 4'])
})

const errorOf = (fields: object): object => ({ err: Object.assign(new Error('x'), fields) })
const refused = errorOf({ message: 'connect 127.0.0.1:1', code: 'ECONNREFUSED' })

it.each<[what: string, isAnother: boolean, first: object, next: object]>([
  ['code', true, refused, errorOf({ code: 'ETIMEDOUT' })],
  ['class of errors', true, refused, { err: new TypeError('x') }],
  ['error of Redis', true, refused, errorOf({ name: 'ReplyError', message: 'OOM command not allowed' })],
  ['reason', true, {}, { reason: 'ClickHouse 241 MEMORY_LIMIT_EXCEEDED' }],
  ['code of a row', true, { code: 'INCORRECT_DATA' }, { code: 'VIOLATED_CONSTRAINT' }],
  ['message of the error', false, refused, errorOf({ message: 'other', code: 'ECONNREFUSED' })],
  ['number in a reason', false, { reason: 'slow for 7 s' }, { reason: 'slow for 12 s' }],
])('whether a line with another %s is of another kind: %s', (_what, isAnother, first, next) => {
  log('a', { fields: first, times: WARNINGS_MAX })
  written = []
  log('a', { fields: next })
  expect(written).toEqual(isAnother ? ['a'] : [])
})

it('counts further kinds together, and loses none, when there are too many', () => {
  for (let kind = 0; kind < kindsMax; kind += 1) log(`kind ${kind}`)
  written = []
  for (let kind = 0; kind < 50; kind += 1) log(`further ${kind}`)
  expect(written).toHaveLength(WARNINGS_MAX)
  log('kind 1')
  expect(written.at(-1)).toBe('kind 1')
  vi.advanceTimersByTime(intervalMs)
  expect(written.at(-1)).toBe(`further 49 × ${50 - WARNINGS_MAX}`)
})
