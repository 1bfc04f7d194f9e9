import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Spool, type SpoolRecord, UnreadableError } from '../../src/index.ts'
import { fakeClient } from '../support/fake-client.ts'
import { pass } from '../support/fake-fetch.ts'

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
