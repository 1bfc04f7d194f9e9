import { RequeueError } from '@sluice/queue'
import { createLogger } from '@sluice/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { Retrier } from '../src/retrier.ts'

let stopping: AbortController
/** The pauses that have started and not ended. */
let pauses: PromiseWithResolvers<void>[]
let retrier: Retrier

beforeEach(() => {
  stopping = new AbortController()
  pauses = []
  // Like the default, a pause ends when the process stops.
  retrier = new Retrier(createLogger('test', 'silent'), stopping.signal, (_ms, signal) => {
    const pause = Promise.withResolvers<void>()
    pauses.push(pause)
    signal.addEventListener('abort', () => pause.resolve())
    return pause.promise
  })
})

/** An operation that fails until the test lets it succeed. */
class Operation {
  isFixed = false
  attempts = 0
  readonly result: Promise<string>

  constructor(name: string, error: Error) {
    this.result = retrier.retry(`${name} failed`, async () => {
      this.attempts += 1
      if (!this.isFixed) throw error
      return name
    })
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

  it('does not retry a RequeueError', async () => {
    const operation = new Operation('insert', new RequeueError('stopping'))
    await expect(operation.result).rejects.toThrow(RequeueError)
    expect(operation.attempts).toBe(1)
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
