import { createLogger } from '@sluice/runtime'
import { AssertionError } from 'node:assert'
import { beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest'
import { workerLimits } from '../src/limits.ts'
import { isFinal, RequeueError, Retrier, UndeliverableError } from '../src/retrier.ts'
import { WorkerEvents } from '../src/worker-events.ts'
import { insertErrors } from './support/chunks.ts'

let stopping: AbortController
/** The pauses that have started and not ended. */
let pauses: PromiseWithResolvers<void>[]
/** Their lengths. */
let pausesMs: number[]
let warnings: MockInstance
let events: WorkerEvents
let retrier: Retrier

beforeEach(() => {
  stopping = new AbortController()
  pauses = []
  pausesMs = []
  const logger = createLogger('test', 'silent')
  warnings = vi.spyOn(logger, 'warn')
  // Like that of the process, a pause ends when its signal is aborted.
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    const pause = Promise.withResolvers<void>()
    pauses.push(pause)
    pausesMs.push(ms)
    signal?.addEventListener('abort', () => pause.resolve())
    return pause.promise
  }
  events = new WorkerEvents()
  retrier = new Retrier({ logger, signal: stopping.signal, clock: { sleep }, random: () => 0.5, events })
})

/** An operation that fails until the test lets it succeed. */
class Operation {
  isFixed = false
  attempts = 0
  readonly result: Promise<string>

  constructor(name: string, error: Error, giveUp?: () => AbortSignal) {
    const run = async (): Promise<string> => {
      this.attempts += 1
      if (!this.isFixed) throw error
      return name
    }
    this.result = retrier.retry(`${name} failed`, run, giveUp)
  }
}

/** Ends the oldest pause, and lets its operation make the next attempt. */
async function retryNext(): Promise<void> {
  pauses.shift()?.resolve()
  await turn()
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const refused = new Error('connection refused')

describe('Retrier.retry', () => {
  it('retries an operation until it succeeds, and returns its result', async () => {
    const operation = new Operation('insert', refused)
    await turn()
    for (let retry = 1; retry <= 3; retry += 1) await retryNext()
    operation.isFixed = true
    await retryNext()
    expect(await operation.result).toBe('insert')
    expect(operation.attempts).toBe(5)
  })

  it('rejects with a RequeueError when the process stops, without another attempt', async () => {
    const operation = new Operation('insert', refused)
    await turn()
    stopping.abort()
    await expect(operation.result).rejects.toThrow(RequeueError)
    expect(operation.attempts).toBe(1)
  })

  it('makes no attempt after the process was stopped', async () => {
    stopping.abort()
    const operation = new Operation('insert', refused)
    await expect(operation.result).rejects.toThrow(RequeueError)
    expect(operation.attempts).toBe(0)
  })

  it('makes no attempt after the process was stopped during the last one', async () => {
    const attempt = Promise.withResolvers<void>()
    const result = retrier.retry('insert failed', () => attempt.promise)
    stopping.abort()
    attempt.reject(refused)
    await expect(result).rejects.toThrow(new RequeueError('insert failed: Error: connection refused'))
    expect(pauses).toEqual([])
  })

  it.each([
    new RequeueError('stopping'),
    new UndeliverableError('rows are not found'),
    new TypeError('x is not a function'),
    new AssertionError({ message: 'broken' }),
  ])('does not retry after an error that no attempt resolves: %s', async (error) => {
    const operation = new Operation('insert', error)
    await expect(operation.result).rejects.toBe(error)
    expect(operation.attempts).toBe(1)
    expect(warnings).not.toHaveBeenCalled()
  })

  it('waits longer after each attempt, and logs each failure without its details', async () => {
    const failed = vi.fn<(message: string) => void>()
    events.on('attempt failed', failed)
    const operation = new Operation('insert', refused)
    await turn()
    for (let retry = 1; retry <= 7; retry += 1) await retryNext()
    const { baseMs, maxMs } = workerLimits.retry
    // A random part of up to half is subtracted: with 0.5, a quarter.
    expect(pausesMs.slice(0, 3)).toEqual([0.75 * baseMs, 1.5 * baseMs, 3 * baseMs])
    expect(pausesMs.at(-1)).toBe(0.75 * maxMs)
    expect(warnings.mock.calls[1]).toEqual([
      { reason: 'Error: connection refused', attempt: 2, retryInMs: 1.5 * baseMs },
      'insert failed',
    ])
    expect(failed.mock.calls).toEqual(Array.from({ length: 8 }, () => ['insert failed']))
    stopping.abort()
    await expect(operation.result).rejects.toThrow(RequeueError)
  })
})

describe('Retrier.retry with a signal to give up', () => {
  let givingUp: AbortController
  const giveUp = (): AbortSignal => givingUp.signal

  beforeEach(() => {
    givingUp = new AbortController()
  })

  it('ends during a pause', async () => {
    const operation = new Operation('insert', refused, giveUp)
    await turn()
    givingUp.abort()
    await expect(operation.result).rejects.toThrow(
      new RequeueError('insert failed: Error: connection refused'),
    )
    expect(operation.attempts).toBe(1)
  })

  it('ends during a pause when the process stops, too', async () => {
    const operation = new Operation('insert', refused, giveUp)
    await turn()
    stopping.abort()
    await expect(operation.result).rejects.toThrow(RequeueError)
    expect(operation.attempts).toBe(1)
  })

  it('makes the first attempt in any case, and no second one', async () => {
    givingUp.abort()
    const operation = new Operation('insert', refused, giveUp)
    await expect(operation.result).rejects.toThrow(RequeueError)
    expect(operation.attempts).toBe(1)
    expect(pauses).toEqual([])
  })

  it('reads the signal after each attempt, since it is replaced when the worker recovers', async () => {
    const operation = new Operation('insert', refused, giveUp)
    givingUp = new AbortController()
    await turn()
    await retryNext()
    givingUp.abort()
    await expect(operation.result).rejects.toThrow(RequeueError)
    expect(operation.attempts).toBe(2)
  })
})

describe('Retrier.failures', () => {
  it('is empty if no operation has failed', async () => {
    await retrier.retry('not called', async () => undefined)
    expect(retrier.failures).toEqual([])
  })

  it('still reports an operation after another one on the same server has succeeded', async () => {
    const read = new Operation('read', refused)
    const insert = new Operation('insert', refused)
    await turn()
    expect(retrier.failures).toEqual([
      'read failed: Error: connection refused',
      'insert failed: Error: connection refused',
    ])
    read.isFixed = true
    await retryNext()
    expect(await read.result).toBe('read')
    expect(retrier.failures).toEqual(['insert failed: Error: connection refused'])
    insert.isFixed = true
    await retryNext()
    expect(await insert.result).toBe('insert')
  })

  it('still reports an operation during its next attempt, after a part of the attempt has succeeded', async () => {
    const insert = Promise.withResolvers<void>()
    const inserts = [() => Promise.reject(refused), () => insert.promise]
    const pending = retrier.retry('insert failed', async () => {
      await retrier.retry('read failed', async () => undefined)
      await inserts.shift()?.()
    })
    await turn()
    await retryNext()
    expect(inserts).toEqual([])
    expect(retrier.failures).toEqual(['insert failed: Error: connection refused'])
    insert.resolve()
    await pending
    expect(retrier.failures).toEqual([])
  })

  it('reports the last error of an operation', async () => {
    const errors = [refused, new Error('connection reset')]
    const pending = retrier.retry('insert failed', async () => {
      const error = errors.shift()
      if (error !== undefined) throw error
    })
    await turn()
    await retryNext()
    expect(retrier.failures).toEqual(['insert failed: Error: connection reset'])
    await retryNext()
    await pending
  })

  it('reports the same failure of several operations once, until the last of them has succeeded', async () => {
    const operations = [new Operation('insert', refused), new Operation('insert', refused)]
    await turn()
    for (const operation of operations) {
      expect(retrier.failures).toEqual(['insert failed: Error: connection refused'])
      operation.isFixed = true
      await retryNext()
      await operation.result
    }
    expect(retrier.failures).toEqual([])
  })

  it('does not report an operation that has succeeded', async () => {
    const operation = new Operation('insert', refused)
    await turn()
    operation.isFixed = true
    await retryNext()
    await operation.result
    expect(retrier.failures).toEqual([])
  })

  it('does not report an operation that was given up because the process stops', async () => {
    const operation = new Operation('insert', refused)
    await turn()
    expect(retrier.failures).toHaveLength(1)
    stopping.abort()
    await expect(operation.result).rejects.toThrow(RequeueError)
    expect(retrier.failures).toEqual([])
  })
})

describe('isFinal', () => {
  it.each([
    new RequeueError('stopping'),
    new UndeliverableError('rows are not found'),
    new TypeError('x is not a function'),
    new RangeError('invalid length'),
    new ReferenceError('x is not defined'),
    new AssertionError({ message: 'broken' }),
  ])('is true for an error that no attempt resolves: %s', (error) => {
    expect(isFinal(error)).toBe(true)
  })

  it.each([new Error('connection lost'), ...Object.values(insertErrors), 'text', undefined])(
    'is false for an error that may pass: %s',
    (error) => {
      expect(isFinal(error)).toBe(false)
    },
  )
})

it('returns chunks to the front of the queue by default', () => {
  expect(new RequeueError('stopping').end).toBe('front')
  expect(new RequeueError('rejected', 'back').end).toBe('back')
})
