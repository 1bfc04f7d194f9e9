import { beforeEach, describe, expect, it } from 'vitest'
import { LostQueryError, QueryWatch, watchLimits } from '../src/query-watch.ts'

const SILENCE = new Error('Timeout error.')

/** What ClickHouse says about the query when it is asked. An error is thrown. */
type Answer = boolean | undefined | Error

let nowMs: number
let log: string[]
let answers: Answer[]
let watch: QueryWatch
/** When pieces of the request are sent. */
let piecesAtMs: number[]
let sendPiece: () => void

beforeEach(() => {
  nowMs = 0
  log = []
  answers = []
  piecesAtMs = []
  sendPiece = () => undefined
  const note = (what: string) => () => void log.push(`${nowMs} ${what}`)
  watch = new QueryWatch({
    runningQueries: {
      has: async () => {
        const answer = answers.shift()
        if (answer instanceof Error) throw answer
        return answer
      },
    },
    monitor: { answered: note('answered'), silent: note('silent'), lost: note('lost'), found: note('found') },
    monotonicMs: () => nowMs,
    // When there is nothing left to ask, the clock stops and the query ends.
    sleep: async (ms, signal) => {
      await new Promise(setImmediate)
      if (answers.length === 0)
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
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

/** Runs a query that has no answer. It ends when it is given up, or when there is nothing left to ask. */
async function runUnanswered(): Promise<void> {
  await watch.run('id', async ({ signal, progressed }) => {
    sendPiece = progressed
    while (answers.length > 0 && !signal.aborted) await new Promise(setImmediate)
    // The last answer arrives.
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate)
    throw new Error(signal.aborted ? 'The user aborted a request.' : SILENCE.message)
  })
}

describe('a query without an answer', () => {
  it('is given up when ClickHouse does not run it, by two questions', async () => {
    answers = [false, false, true]
    await expect(runUnanswered()).rejects.toThrow(LostQueryError)
    expect(log).toEqual(['4000 answered', '4000 lost', '7000 answered', '7000 lost', '7000 found'])
  })

  it('is not given up while ClickHouse runs it', async () => {
    answers = [true, true, true, true]
    await expect(runUnanswered()).rejects.toThrow(SILENCE.message)
    expect(log.filter((line) => line.endsWith('lost'))).toEqual([])
  })

  it('is not given up by one question, since its answer may be in flight', async () => {
    answers = [true, false, true, false, true]
    await expect(runUnanswered()).rejects.toThrow(SILENCE.message)
  })

  it('is not given up if ClickHouse does not say whether it runs it', async () => {
    answers = [undefined, undefined, new Error('no permission'), undefined]
    await expect(runUnanswered()).rejects.toThrow(SILENCE.message)
    expect(log.map((line) => line.split(' ')[1])).toEqual(Array(4).fill('answered').concat('found'))
  })

  it('is given up when ClickHouse is silent, by two questions in a row', async () => {
    answers = [SILENCE, SILENCE, true]
    await expect(runUnanswered()).rejects.toThrow(LostQueryError)
    expect(log.map((line) => line.split(' ')[1])).toEqual(['silent', 'silent', 'found'])
    answers = [SILENCE, true, SILENCE, true, SILENCE]
    await expect(runUnanswered()).rejects.toThrow(SILENCE.message)
    answers = [SILENCE, false, SILENCE, false]
    await expect(runUnanswered()).rejects.toThrow(LostQueryError)
  })

  it('is not asked about while its request is being sent', async () => {
    answers = [true]
    piecesAtMs = [1_000, 4_000, 7_000, 9_000]
    await expect(runUnanswered()).rejects.toThrow(SILENCE.message)
    expect(log.find((line) => line.endsWith('answered'))).toBe('13000 answered')
  })

  it('is not given up if its request makes progress between two questions', async () => {
    answers = [false, false, false, true]
    piecesAtMs = [6_000, 12_000, 17_000]
    await expect(runUnanswered()).rejects.toThrow(SILENCE.message)
  })
})

it('asks nothing about a query that is answered soon', async () => {
  answers = [false]
  expect(await watch.run('id', async () => 'result')).toBe('result')
  expect(answers).toHaveLength(1)
  expect(log).toEqual(['0 answered', '0 found'])
})

it.each([
  ['an error of ClickHouse', Object.assign(new Error('m'), { code: '241' })],
  ['a refused connection', Object.assign(new Error('m'), { code: 'ECONNREFUSED' })],
  ['a reset connection', Object.assign(new Error('m'), { code: 'ECONNRESET' })],
  ['a page of a load balancer', new Error('<html>502 Bad Gateway</html>')],
])('takes %s for an answer', async (_what, error) => {
  await expect(watch.run('id', () => Promise.reject(error))).rejects.toBe(error)
  expect(log).toEqual(['0 answered', '0 found'])
})

it.each([
  ['the client', SILENCE],
  ['the kernel', Object.assign(new Error('m'), { code: 'ETIMEDOUT' })],
])('does not take a timeout of %s for an answer', async (_what, error) => {
  await expect(watch.run('id', () => Promise.reject(error))).rejects.toBe(error)
  expect(log).toEqual(['0 found'])
})

it('knows that a query is running only if ClickHouse says so', async () => {
  answers = [true, false, undefined, new Error('no permission'), SILENCE]
  const known: boolean[] = []
  while (answers.length > 0) known.push(await watch.isRunning('id'))
  expect(known).toEqual([true, false, false, false, false])
})

it('reports a silent connection within 10 s, and gives it up soon enough for a retry within 20 s', () => {
  const { quietMs, intervalMs, questionTimeoutMs, missingMax } = watchLimits
  expect(quietMs + questionTimeoutMs).toBeLessThan(10_000)
  expect(quietMs + (missingMax - 1) * intervalMs + missingMax * questionTimeoutMs).toBeLessThan(15_000)
})
