import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Spool, type SpoolRecord, UnreadableError } from '../../src/index.ts'
import { fakeClient } from '../support/fake-client.ts'
import { pass, problemOf } from '../support/fake-fetch.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A spool with one recovered record, whose reads end as given. */
class RecoveredSpool implements Spool {
  readonly removed: string[] = []
  readonly #reads: (() => Promise<string[]>)[]

  constructor(...reads: (() => Promise<string[]>)[]) {
    this.#reads = reads
  }

  async open({ onRecovered }: Parameters<Spool['open']>[0]): Promise<void> {
    const record = this.create('key')
    onRecovered([{ idempotencyKey: 'key', record, entries: 2, bytes: 999, attemptedAtMs: undefined }])
  }

  hasRoomFor = (): boolean => true

  create(key: string): SpoolRecord {
    return {
      add: () => undefined,
      isWritten: true,
      written: async () => undefined,
      markAttempt: async () => undefined,
      clearAttempt: async () => undefined,
      read: () => this.#reads.shift()?.() ?? Promise.reject(new Error('no more')),
      remove: async () => void this.removed.push(key),
    }
  }

  close = async (): Promise<void> => undefined
}

const texts = ['{"level":"info","message":"1"}', '{"level":"info","message":"2"}']

describe('a batch of another process', () => {
  test('that cannot be read now is read again later, and not removed before it is acknowledged', async () => {
    const spool = new RecoveredSpool(
      () => Promise.reject(new Error('EMFILE: too many open files')),
      async () => texts,
    )
    const { client, api, reported } = fakeClient({ spool })
    await pass(1_000)
    expect(api.requests).toEqual([])
    expect(spool.removed).toEqual([])
    expect(client.stats).toMatchObject({ spooledEntries: 2, queuedEntries: 0, dropped: 0 })
    expect(reported.errors).toMatchObject([
      { kind: 'spool', message: expect.stringContaining('EMFILE') as string },
    ])
    await pass(30_000)
    expect(api.requests).toMatchObject([{ key: 'key', messages: ['1', '2'] }])
    expect(client.stats).toMatchObject({ spooledEntries: 0, queuedEntries: 2, queuedBytes: 60 })
    api.last.accept()
    await pass(0)
    expect(spool.removed).toEqual(['key'])
    expect(client.stats).toMatchObject({ accepted: 2, queuedEntries: 0, queuedBytes: 0 })
  })

  test('that is lost is dropped and reported', async () => {
    const spool = new RecoveredSpool(() => Promise.reject(new UnreadableError('damaged')))
    const { client, reported } = fakeClient({ spool })
    await pass(1_000)
    expect(client.stats).toMatchObject({ dropped: 2, queuedEntries: 0, queuedBytes: 0, spooledEntries: 0 })
    expect(reported.drops).toEqual([{ messages: [], reason: 'unreadable' }])
    expect(reported.errors).toHaveLength(1)
  })

  test('that cannot be read when the client is closed is left to the next process', async () => {
    const spool = new RecoveredSpool(() => Promise.reject(new Error('EMFILE')))
    const { client } = fakeClient({ spool })
    await pass(1_000)
    const closed = client.close({ remaining: 'give-up' })
    await pass(1_000)
    expect(await closed).toMatchObject({ pending: 2, dropped: 0 })
    expect(client.stats.kept).toBe(2)
    expect(spool.removed).toEqual([])
  })
})

/** A spool whose records have some operations that never end. */
function hangingSpool(hanging: Partial<SpoolRecord>): Spool {
  const record: SpoolRecord = {
    add: () => undefined,
    isWritten: true,
    written: async () => undefined,
    markAttempt: async () => undefined,
    clearAttempt: async () => undefined,
    read: async () => texts,
    remove: async () => undefined,
    ...hanging,
  }
  const recovered = { idempotencyKey: 'key', record, entries: 2, bytes: 999, attemptedAtMs: undefined }
  return {
    open: async ({ onRecovered }) => ('read' in hanging ? onRecovered([recovered]) : undefined),
    hasRoomFor: () => true,
    create: () => record,
    close: async () => undefined,
  }
}

const never = (): Promise<never> => new Promise(() => undefined)

describe('a disk that hangs delays requests by five seconds at most, and is reported once', () => {
  const late = { kind: 'spool', message: expect.stringContaining('did not answer within 5000 ms') as string }

  test.each<[string, Partial<SpoolRecord>]>([
    ['while it writes the mark of an attempt', { markAttempt: never }],
    ['while it writes entries', { markAttempt: never, isWritten: false, remove: never }],
  ])('%s', async (_name, hanging) => {
    const { client, api, reported, log } = fakeClient({ spool: hangingSpool(hanging), batchEntriesMax: 1 })
    api.isAccepting = true
    log(4)
    await pass(4_900)
    expect(client.stats.accepted).toBe(0)
    await pass(200)
    expect(client.stats.accepted).toBe(4)
    // It is not waited for again before it has answered.
    log(4)
    await pass(1)
    expect(client.stats.accepted).toBe(8)
    expect(reported.errors).toMatchObject([late])
  })

  test('while it removes the mark of an attempt', async () => {
    const { client, api, reported, log } = fakeClient({ spool: hangingSpool({ clearAttempt: never }) })
    log(1)
    await pass(1_000)
    api.last.respond(503, problemOf('overloaded'))
    await pass(5_500)
    api.last.accept()
    await pass(0)
    expect(client.stats.accepted).toBe(1)
    expect(reported.errors).toMatchObject([late])
  })

  test('while it reads entries, which are read later', async () => {
    let isHanging = true
    const read = (): Promise<string[]> => (isHanging ? never() : Promise.resolve(texts))
    const { client, api, reported, log } = fakeClient({
      spool: hangingSpool({ read }),
      requestsInFlightMax: 1,
    })
    api.isAccepting = true
    log(1)
    await pass(6_000)
    expect(client.stats.accepted).toBe(1)
    isHanging = false
    await pass(30_000)
    expect(client.stats.accepted).toBe(3)
    expect(reported.errors).toMatchObject([late])
  })

  test('and is waited for again when it has answered', async () => {
    const answers: (() => void)[] = []
    const markAttempt = (): Promise<void> => new Promise((resolve) => answers.push(resolve))
    const { client, api, log } = fakeClient({ spool: hangingSpool({ markAttempt }) })
    api.isAccepting = true
    log(1)
    await pass(6_000)
    expect(client.stats.accepted).toBe(1)
    answers[0]?.()
    log(1)
    await pass(2_000)
    expect(client.stats.accepted).toBe(1)
    answers[1]?.()
    await pass(0)
    expect(client.stats.accepted).toBe(2)
  })
})
