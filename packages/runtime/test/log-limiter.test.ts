import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
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

function redisError(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' })
}

interface Line {
  readonly level?: string
  readonly fields?: object
  readonly times?: number
}

function log(message: string, { level = 'warn', fields = {}, times = 1 }: Line = {}): void {
  for (let i = 0; i < times; i += 1) {
    const report = (repeated: number): void => void written.push(`${message} × ${repeated}`)
    if (limiter.admits(level, message, fields, report)) written.push(message)
  }
}

describe('lines of one kind', () => {
  it('are written up to the limit of an interval, and then counted in one line at its end', () => {
    log('a', { times: WARNINGS_MAX + 7 })
    const lines = Array.from({ length: WARNINGS_MAX }, () => 'a')
    expect(written).toEqual(lines)
    vi.advanceTimersByTime(intervalMs - 1)
    expect(written).toEqual(lines)
    vi.advanceTimersByTime(1)
    expect(written).toEqual([...lines, 'a × 7'])
    expect(limiter.linesDropped).toBe(7)
  })

  it.each(['fatal', 'debug', 'trace'])('have no limit at level %s', (level) => {
    log('a', { level, times: 1_000 })
    expect(written).toHaveLength(1_000)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('are reported before their end by a flush, once', () => {
    log('a', { times: WARNINGS_MAX + 4 })
    written = []
    limiter.flush()
    vi.advanceTimersByTime(intervalMs)
    expect(written).toEqual(['a × 4'])
  })
})

describe('another kind', () => {
  it.each([
    ['another message', 'b', {}],
    ['another level', 'a', { level: 'error' }],
    ['another code', 'a', { fields: { err: Object.assign(new Error('x'), { code: 'ETIMEDOUT' }) } }],
    ['another class of errors', 'a', { fields: { err: new TypeError('x') } }],
    ['another error of Redis', 'a', { fields: { err: redisError('OOM command not allowed') } }],
    ['another reason', 'a', { fields: { reason: 'ClickHouse 241 MEMORY_LIMIT_EXCEEDED' } }],
    ['another code of a row', 'a', { fields: { code: 'VIOLATED_CONSTRAINT' } }],
  ])('has %s', (_what, message, options) => {
    const refused = Object.assign(new Error('connect 127.0.0.1:1'), { code: 'ECONNREFUSED' })
    log('a', { fields: { err: refused }, times: WARNINGS_MAX + 1 })
    written = []
    log(message, options)
    expect(written).toEqual([message])
  })

  it.each([
    ['the message of the error', { err: Object.assign(new Error('other'), { code: 'ECONNREFUSED' }) }, {}],
    ['the numbers of a reason', { reason: 'slow for 7 s' }, { reason: 'slow for 12 s' }],
    ['other fields', { attempt: 7 }, { attempt: 8 }],
  ])('has not only %s changed', (_what, next, first) => {
    const code = Object.assign(new Error('one'), { code: 'ECONNREFUSED' })
    log('a', { fields: 'err' in next ? { err: code } : first, times: WARNINGS_MAX })
    written = []
    log('a', { fields: next })
    expect(written).toEqual([])
  })
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
  log('kind 0')
  expect(written.at(-1)).toBe('kind 0')
})
