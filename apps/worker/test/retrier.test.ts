import { createLogger } from '@sluice/runtime'
import { AssertionError } from 'node:assert'
import { beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest'
import { workerLimits } from '../src/limits.ts'
import { RequeueError, Retrier, UndeliverableError } from '../src/retrier.ts'
import { WorkerEvents } from '../src/worker-events.ts'
import { TestClock } from './support/test-clock.ts'

const { baseMs, maxMs } = workerLimits.retry
const refused = new Error('connection refused')

let clock: TestClock
let stopping: AbortController
let givingUp: AbortController
let events: WorkerEvents
let warnings: MockInstance
let retrier: Retrier

beforeEach(() => {
  clock = new TestClock()
  stopping = new AbortController()
  givingUp = new AbortController()
  events = new WorkerEvents()
  const logger = createLogger('test', 'silent')
  warnings = vi.spyOn(logger, 'warn')
  retrier = new Retrier({ logger, signal: stopping.signal, clock, random: () => 0.5, events })
})

/** An operation that fails until the test lets it succeed. */
class Operation {
  error: Error | undefined = refused
  /** When attempts were made. */
  readonly attemptedAtMs: number[] = []
  readonly result: Promise<string>

  constructor(name: string, error: Error = refused, giveUp?: () => AbortSignal) {
    this.error = error
    const run = async (): Promise<string> => {
      this.attemptedAtMs.push(clock.nowMs())
      if (this.error !== undefined) throw this.error
      return name
    }
    this.result = retrier.retry(`${name} failed`, run, giveUp)
    this.result.catch(() => undefined)
  }
}

describe('Retrier.retry', () => {
  it('retries an operation until it succeeds, waits longer each time, and logs each failure without its details', async () => {
    const failed = vi.fn<(message: string) => void>()
    events.on('attempt failed', failed)
    const operation = new Operation('insert')
    await clock.pass(5 * maxMs)
    const attempts = operation.attemptedAtMs.length
    operation.error = undefined
    expect(await clock.settle(operation.result)).toBe('insert')
    const waitsMs = operation.attemptedAtMs.map((ms, index, all) => ms - (all[index - 1] ?? 0)).slice(1)
    // A random part of up to half is subtracted: with 0.5, a quarter.
    expect(waitsMs.slice(0, 3)).toEqual([0.75 * baseMs, 1.5 * baseMs, 3 * baseMs])
    expect(waitsMs.at(-1)).toBe(0.75 * maxMs)
    expect(warnings.mock.calls[1]).toEqual([
      { reason: 'Error: connection refused', attempt: 2, retryInMs: 1.5 * baseMs },
      'insert failed',
    ])
    expect(failed.mock.calls).toEqual(Array.from({ length: attempts }, () => ['insert failed']))
  })

  it.each([
    new RequeueError('stopping'),
    new UndeliverableError('rows are not found'),
    new TypeError('x is not a function'),
    new RangeError('invalid length'),
    new ReferenceError('x is not defined'),
    new AssertionError({ message: 'broken' }),
  ])('does not retry after an error that no attempt resolves: %s', async (error) => {
    const operation = new Operation('insert', error)
    await expect(operation.result).rejects.toBe(error)
    expect(operation.attemptedAtMs).toHaveLength(1)
    expect(warnings).not.toHaveBeenCalled()
  })

  it.each([
    ['the worker gives up', () => undefined, () => givingUp.abort(), [0]],
    ['the process stops', () => undefined, () => stopping.abort(), [0]],
    ['the worker had given up', () => givingUp.abort(), () => undefined, [0]],
    ['the process had stopped', () => stopping.abort(), () => undefined, []],
  ])('makes no further attempt, at once, when %s', async (_when, before, end, attemptedAtMs) => {
    before()
    const operation = new Operation('insert', refused, () => givingUp.signal)
    await clock.pass(0)
    end()
    await expect(operation.result).rejects.toThrow(RequeueError)
    expect(operation.attemptedAtMs).toEqual(attemptedAtMs)
    expect(clock.nowMs()).toBe(0)
  })

  it('reads the signal to give up after each attempt, since it is replaced when the worker recovers', async () => {
    const operation = new Operation('insert', refused, () => givingUp.signal)
    givingUp = new AbortController()
    await clock.pass(baseMs)
    givingUp.abort()
    await expect(operation.result).rejects.toThrow(RequeueError)
  })
})

describe('Retrier.failures', () => {
  it('has the last error of each operation, whatever happens to the others', async () => {
    await retrier.retry('not called', async () => undefined)
    expect(retrier.failures).toEqual([])
    const operations = ['read', 'insert', 'insert'].map((name) => new Operation(name))
    const [read, insert, other] = operations
    await clock.pass(0)
    expect(retrier.failures).toEqual([
      'read failed: Error: connection refused',
      'insert failed: Error: connection refused',
    ])
    if (read !== undefined) read.error = undefined
    if (insert !== undefined) insert.error = undefined
    if (other !== undefined) other.error = new Error('connection reset')
    await clock.pass(baseMs)
    expect(retrier.failures).toEqual(['insert failed: Error: connection reset'])
    stopping.abort()
    await expect(other?.result).rejects.toThrow(RequeueError)
    expect(retrier.failures).toEqual([])
  })
})
