import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { integer, pick, seededRandom } from '@sluice/harness'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { accept, FakeApi, loseAnswer, neverAnswer, problem, type Responder } from '../support/fake-api.ts'

const childPath = fileURLToPath(new URL('../support/spool-child.ts', import.meta.url))
const ROUNDS = 8
/** More than one life of a child logs. */
const NUMBERS_PER_LIFE = 1_000_000

let api: FakeApi
let directory = ''
beforeEach(async () => {
  api = new FakeApi()
  await api.start()
  directory = await mkdtemp(join(tmpdir(), 'spool-'))
})
afterEach(async () => {
  await api.stop()
  await rm(directory, { recursive: true })
})

interface Life {
  readonly child: ChildProcess
  readonly first: number
  /** All numbers before this one are in the spool. */
  end: number
  readonly lost: string[]
}

/** @param first the first number that it logs. Without, it only sends what others left */
function start(first?: number): Life {
  const child = spawn(process.execPath, [childPath, api.url, directory, String(first ?? '')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const life: Life = { child, first: first ?? 0, end: first ?? 0, lost: [] }
  createInterface(child.stdout).on('line', (line) => {
    if (line.startsWith('written ')) life.end = Number(line.slice('written '.length)) + 1
    else life.lost.push(line)
  })
  return life
}

async function kill({ child }: Life): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'close')
}

/** Stores the entries, and closes the connection without a response. */
const storeAndLoseAnswer: Responder = (response, { headers, logs }) => {
  const key = String(headers['idempotency-key'])
  if (!api.stored.has(key)) api.stored.set(key, logs)
  response.socket?.destroy()
}

test('after kill -9 at any moment, each entry in the spool is stored, and none is stored twice', async () => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  const random = seededRandom(seed)
  const lives: Life[] = []
  const failing = [storeAndLoseAnswer, loseAnswer, neverAnswer, problem(503, 'overloaded')]
  api.responder = (...values) => pick(random, [accept, accept, accept, ...failing])(...values)
  for (let round = 0; round < ROUNDS; round += 1) {
    // Sometimes two processes share the directory.
    const current = Array.from({ length: integer(random, 1, 2) }, (_, i) =>
      start((2 * round + i) * NUMBERS_PER_LIFE),
    )
    lives.push(...current)
    await vi.waitFor(() => expect(current.every(({ first, end }) => end > first)).toBe(true), 20_000)
    await sleep(integer(random, 0, 400))
    await Promise.all(current.map(kill))
  }

  api.responder = accept
  const last = start()
  await vi.waitFor(async () => {
    const files = await readdir(directory, { recursive: true })
    expect(files.filter((file) => file.endsWith('.batch'))).toEqual([])
  }, 20_000)
  await kill(last)

  const bodies = new Map<string, string>()
  for (const { headers, body } of api.received) {
    const key = String(headers['idempotency-key'])
    expect(body, `seed ${seed}: another body with the key ${key}`).toBe(bodies.get(key) ?? body)
    bodies.set(key, body)
  }
  const stored = api.storedMessages.map(Number)
  const unique = new Set(stored)
  expect(stored.length, `seed ${seed}: duplicates`).toBe(unique.size)
  const missing = lives.flatMap(({ first, end }) =>
    Array.from({ length: end - first }, (_, i) => first + i).filter((number) => !unique.has(number)),
  )
  expect(missing.length, `seed ${seed}: lost ${missing.slice(0, 5).join(', ')}, …`).toBe(0)
  const lost = [...lives, last].flatMap((life) => life.lost)
  expect(lost, `seed ${seed}`).toEqual([])
  expect(unique.size).toBeGreaterThan(ROUNDS * 10)
}, 120_000)
