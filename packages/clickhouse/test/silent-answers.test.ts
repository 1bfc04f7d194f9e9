import { HttpServer } from '@sluice/harness/http-server'
import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type ClickHouseClient, connectClickHouse } from '../src/client.ts'
import { DeadLetters } from '../src/dead-letters.ts'
import { FrameInserter } from '../src/frame-inserter.ts'
import { LostQueryError, type QueryWatcher, QueryWatch, unwatched } from '../src/query-watch.ts'
import { selectRows } from '../src/select-rows.ts'

const frames = [Buffer.from('frame')]
const WAIT = { timeout: 10_000, interval: 1 }

/** The number of answers. The first one never ends, the others are complete. */
let begun: number
let server: HttpServer
let client: ClickHouseClient
/** The queries that are watched are given up when this resolves. */
let lose: () => void
let watch: QueryWatch

beforeEach(async () => {
  begun = 0
  server = new HttpServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200).write('{"n":1}\n')
      begun += 1
      if (begun > 1) response.end()
    })
  })
  await server.listen()
  const access = { url: server.url, username: 'default', password: '', database: 'default' }
  // A query waits while the one before it holds the connection, for longer than a test may take.
  client = connectClickHouse(access, { requestTimeoutMs: 300_000, connectionsMax: 1 })
  let nowMs = 0
  const lost = Promise.withResolvers<void>()
  lose = lost.resolve
  watch = new QueryWatch({
    runningQueries: { has: async () => false },
    monitor: { answered: () => {}, silent: () => {}, lost: () => {}, found: () => {} },
    // Each look at the clock is far later than the one before it.
    monotonicMs: () => (nowMs += 10_000),
    sleep: async (_ms, signal) => {
      const ended = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      await Promise.race([lost.promise, ended])
      await setImmediate()
    },
  })
})

afterEach(async () => {
  lose()
  await client.close()
  await server.close()
})

/** Gives a query up after its answer has begun. */
async function expectGivenUp(method: 'exec' | 'query', send: () => Promise<unknown>): Promise<void> {
  const spy = vi.spyOn(client, method)
  const sent = send()
  sent.catch(() => undefined)
  await vi.waitFor(() => expect(spy).toHaveBeenCalled(), WAIT)
  await spy.mock.results[0]?.value
  lose()
  await expect(sent).rejects.toThrow(LostQueryError)
}

describe('when an answer begins and does not end', () => {
  it('an insert is given up, and its connection does not make others wait', async () => {
    await expectGivenUp('exec', () => new FrameInserter(client, watch).insert(frames, 'first'))
    await new FrameInserter(client).insert(frames, 'second')
    expect(begun).toBe(2)
  })

  it('a dead letter is given up, and its connection does not make others wait', async () => {
    const options = {
      areTokensAtomic: false,
      sleep: async () => {},
      beforeAttempt: async () => {},
      onTokenWithoutRows: () => {},
    }
    const letter = { code: 'INCORRECT_DATA', reason: 'a reason', text: '{}' }
    const store = (token: string, queries: QueryWatcher): Promise<unknown> =>
      new DeadLetters(client, randomUUID, Date.now, options, queries).prepare(letter, token, false).run()
    await expectGivenUp('exec', () => store('first', watch))
    await store('second', unwatched)
    expect(begun).toBe(2)
  })

  it('rows are given up, and their connection does not make others wait', async () => {
    await expectGivenUp('query', () => selectRows(client, watch, 'first', { query: 'SELECT 1' }))
    expect(await selectRows(client, unwatched, 'second', { query: 'SELECT 1' })).toEqual([{ n: 1 }])
  })
})

describe('when an answer is cut off', () => {
  it('an insert fails, since its end is not known', async () => {
    const exec = vi.spyOn(client, 'exec')
    const sent = new FrameInserter(client).insert(frames, 'token')
    sent.catch(() => undefined)
    await exec.mock.results[0]?.value
    await server.close()
    await expect(sent).rejects.toThrow('aborted')
  })
})
