import { HttpServer } from '@sluice/harness/http-server'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type ClickHouseClient, connectClickHouse } from '../src/client.ts'
import {
  LostQueryError,
  QueryWatch,
  type QueryWatchOptions,
  type QueryWatcher,
  insertStream,
  lookUp,
  watchLimits,
} from '../src/query-watch.ts'
import { unwatched } from './test-database.ts'

const SILENCE = new Error('Timeout error.')
const READY = { ready: true, reasons: [] }
const SILENT = { ready: false, reasons: ['ClickHouse does not answer on new connections'] }

/** Whether ClickHouse runs the query, when it is asked. An error is thrown. */
type Finding = boolean | Error

let nowMs: number
let findings: Finding[]
/** When each question was asked. */
let askedAtMs: number[]
let watch: QueryWatch
/** When pieces of the request are sent. */
let piecesAtMs: number[]
let sendPiece: () => void

/** A client for questions, which gets these responses. */
function questionsOf(respond: () => Finding | undefined): QueryWatchOptions['client'] {
  const query = async () => {
    const finding = respond()
    if (finding instanceof Error) throw finding
    return { json: async () => (finding === true ? [{}] : []) }
  }
  return { query } as unknown as QueryWatchOptions['client']
}

beforeEach(() => {
  nowMs = 0
  findings = []
  askedAtMs = []
  piecesAtMs = []
  sendPiece = () => undefined
  watch = new QueryWatch({
    client: questionsOf(() => {
      askedAtMs.push(nowMs)
      return findings.shift()
    }),
    isCluster: false,
    monotonicMs: () => nowMs,
    // When there is nothing left to ask, the clock stops and the query ends.
    sleep: async (ms, signal) => {
      await new Promise(setImmediate)
      if (findings.length === 0)
        return new Promise((resolve) => signal?.addEventListener('abort', () => resolve()))
      const endMs = nowMs + ms
      for (let atMs = piecesAtMs[0]; atMs !== undefined && atMs <= endMs; atMs = piecesAtMs[0]) {
        piecesAtMs.shift()
        nowMs = atMs
        sendPiece()
      }
      nowMs = endMs
      return undefined
    },
  })
})

/** Runs a query without a response. It ends when it is given up, or when there is nothing left to ask. */
async function runUnanswered(responses: readonly Finding[]): Promise<void> {
  findings = [...responses]
  await watch.run('id', async ({ signal, progressed }) => {
    sendPiece = progressed
    while (findings.length > 0 && !signal.aborted) await new Promise(setImmediate)
    // The last response arrives.
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate)
    throw new Error(signal.aborted ? 'The user aborted a request.' : SILENCE.message)
  })
}

it.each([
  ['ClickHouse does not run it, by two questions', [false, false, true]],
  ['ClickHouse does not run it, and is silent at times', [SILENCE, false, SILENCE, false]],
  ['ClickHouse is silent, by two questions in a row', [SILENCE, SILENCE, true]],
])('gives up a query without a response when %s', async (_when, responses) => {
  await expect(runUnanswered(responses)).rejects.toThrow(LostQueryError)
  expect(askedAtMs.slice(0, 2)).toEqual([4_000, 7_000])
})

it.each([
  ['while ClickHouse runs it', [true, true, true, true]],
  ['by one question, since its response may be in flight', [true, false, true, false, true]],
  ['by one question without a response', [SILENCE, true, SILENCE, true, SILENCE]],
  ['if ClickHouse does not say whether it runs it', [new Error('no permission'), new Error('no'), true]],
  [
    'if its request makes progress between two questions',
    [false, false, false, true],
    [6_000, 12_000, 17_000],
  ],
])('does not give up a query without a response %s', async (_when, responses, pieces: number[] = []) => {
  piecesAtMs = pieces
  await expect(runUnanswered(responses)).rejects.toThrow(SILENCE.message)
})

it('asks nothing about a query while its request is being sent, or if it gets its response soon', async () => {
  piecesAtMs = [1_000, 4_000, 7_000, 9_000]
  await expect(runUnanswered([true])).rejects.toThrow(SILENCE.message)
  expect(askedAtMs).toEqual([13_000])
  findings = [false]
  expect(await watch.run('id', async () => 'result')).toBe('result')
  expect(askedAtMs).toEqual([13_000])
})

it('knows that a query is running only if ClickHouse says so, and never on a cluster: another server may run it', async () => {
  findings = [true, false, new Error('no permission'), SILENCE]
  const known: boolean[] = []
  while (findings.length > 0) known.push(await watch.isRunning('id'))
  expect(known).toEqual([true, false, false, false])
  const cluster = new QueryWatch({ client: questionsOf(() => true), isCluster: true, monotonicMs: () => 0 })
  expect(await cluster.isRunning('id')).toBe(false)
})

/** Asks, and gets no response. */
async function askInVain(): Promise<void> {
  findings = [SILENCE]
  await watch.isRunning('id')
}

describe('readiness', () => {
  it.each([
    ['returns with a result', undefined],
    ['returns with an error of ClickHouse', Object.assign(new Error('m'), { code: '241' })],
    ['returns with a refused connection', Object.assign(new Error('m'), { code: 'ECONNREFUSED' })],
    ['does not return with a timeout of the client', SILENCE],
    ['does not return with a timeout of the kernel', Object.assign(new Error('m'), { code: 'ETIMEDOUT' })],
  ])('ends with a question without a response, and %s', async (what, error) => {
    expect(watch.readiness).toEqual(READY)
    await askInVain()
    expect(watch.readiness).toEqual(SILENT)
    const send = async () => {
      if (error !== undefined) throw error
    }
    expect(await watch.run('id', send).catch((thrown: unknown) => thrown)).toBe(error)
    expect(watch.readiness).toEqual(what.startsWith('returns') ? READY : SILENT)
  })

  it('returns when nothing waits for ClickHouse any more', async () => {
    await askInVain()
    nowMs += watchLimits.evidenceMaxMs
    expect(watch.readiness).toEqual(SILENT)
    nowMs += 1
    expect(watch.readiness).toEqual(READY)
  })
})

/** Questions without a response, every six seconds. */
async function askFor(silentMs: number): Promise<void> {
  for (const endMs = nowMs + silentMs; nowMs < endMs; nowMs += 6_000) await askInVain()
}

it('is alive until nothing has responded for two minutes, while something waited', async () => {
  await askFor(60_000)
  nowMs += 600_000
  expect(watch.isAlive).toBe(true)
  // The process was suspended, or had no queries. The silence begins again.
  await askFor(120_000)
  expect(watch.isAlive).toBe(true)
  await askFor(12_000)
  expect(watch.isAlive).toBe(false)
  await watch.run('another', async () => 'a result')
  expect(watch.isAlive).toBe(true)
})

describe('a response that begins', () => {
  const insert = (token: string, queries: QueryWatcher): Promise<void> =>
    insertStream(client, queries, token, { query: 'INSERT' }, () => [Buffer.from('frame')])
  /** The number of responses. The first one never ends, the others are complete. */
  let begun: number
  let server: HttpServer
  let client: ClickHouseClient
  /** The queries that are watched are given up when this resolves. */
  let lose: () => void

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
    let lookedAtMs = 0
    const lost = Promise.withResolvers<void>()
    lose = lost.resolve
    watch = new QueryWatch({
      client: questionsOf(() => false),
      isCluster: false,
      // Each look at the clock is far later than the one before it.
      monotonicMs: () => (lookedAtMs += 10_000),
      sleep: async (_ms, signal) => {
        const ended = new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
        await Promise.race([lost.promise, ended])
        await new Promise(setImmediate)
      },
    })
  })

  afterEach(async () => {
    lose()
    await client.close()
    await server.close()
  })

  it.each<
    [what: string, method: 'exec' | 'query', send: (token: string, queries: QueryWatcher) => Promise<unknown>]
  >([
    ['an insert', 'exec', insert],

    ['a lookup', 'query', (token, queries) => lookUp(client, queries, { query: 'SELECT 1' }, token)],
  ])(
    'of %s and does not end is given up, and its connection does not make others wait',
    async (_what, method, send) => {
      const spy = vi.spyOn(client, method)
      const sent = send('first', watch)
      sent.catch(() => undefined)
      await vi.waitFor(() => expect(spy).toHaveBeenCalled(), { interval: 1 })
      await spy.mock.results[0]?.value
      lose()
      await expect(sent).rejects.toThrow(LostQueryError)
      await send('second', unwatched)
      expect(begun).toBe(2)
    },
  )

  it('and is cut off makes an insert fail, since its end is not known', async () => {
    const exec = vi.spyOn(client, 'exec')
    const sent = insert('token', unwatched)
    sent.catch(() => undefined)
    await exec.mock.results[0]?.value
    await server.close()
    await expect(sent).rejects.toThrow('aborted')
  })
})
