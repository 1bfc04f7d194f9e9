import { startStack, type Stack } from '@sluice/local'
import { connectClickHouse, connectRedis, type ClickHouseClient } from '@sluice/runtime'
import { redisNames } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from './support.ts'
import { startTestServices } from './test-services.ts'

let stack: Stack
let clickhouse: ClickHouseClient

beforeAll(async () => {
  stack = await startStack({
    services: await startTestServices(),
    worker: { environment: { LOCK_DURATION_MS: '2000' } },
  })
  clickhouse = connectClickHouse(stack.clickhouse, { requestTimeoutMs: 5_000, connectionsMax: 4 })
})

afterAll(async () => {
  await clickhouse?.close()
  await stack?.stop()
})

interface Answer {
  readonly status: number
  readonly isReplay: boolean
  readonly text: string
}

async function send(key: string, body: unknown): Promise<Answer> {
  const response = await fetch(`${stack.apiUrl}/v1/logs`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${stack.apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  })
  const isReplay = response.headers.get('idempotency-replayed') === 'true'
  return { status: response.status, isReplay, text: await response.text() }
}

/** Sends until it is taken. */
const sendUntilTaken = (key: string, body: unknown): Promise<Answer> =>
  eventually(20_000, async () => {
    const answer = await send(key, body)
    expect(answer.status).toBe(202)
    return answer
  })

async function rowsOf(service: string): Promise<{ id: string; message: string }[]> {
  const result = await clickhouse.query({
    query: 'SELECT toString(id) AS id, message FROM logs WHERE service = {service: String} ORDER BY message',
    query_params: { service },
    format: 'JSONEachRow',
  })
  return result.json()
}

/** Resolves when nothing is in the queue any more. */
async function drained(): Promise<void> {
  const { queue, queuePrefix } = redisNames(stack.prefix)
  const redis = connectRedis(stack.redisUrl, { failFast: false })
  try {
    await eventually(20_000, async () => {
      const lists = ['wait', 'active'].map((list) => redis.llen(`${queuePrefix}:${queue}:${list}`))
      expect(await Promise.all(lists)).toEqual([0, 0])
    })
  } finally {
    redis.disconnect()
  }
}

const entryOf = (service: string, message = 'm'): object => ({ level: 'info', message, service })

it('stores a hundred requests with one key at once as one row', async () => {
  const entry = entryOf('at-once')
  const answers = await Promise.all(Array.from({ length: 100 }, () => send('at-once', entry)))
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 202))
  expect(answers.filter(({ isReplay }) => isReplay)).toHaveLength(99)
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
  await drained()
  expect(await rowsOf('at-once')).toEqual([
    { id: (JSON.parse(answers[0]?.text ?? '') as { id: string }).id, message: 'm' },
  ])
}, 60_000)

it('takes exactly one of a hundred bodies with one key', async () => {
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) => send('one-wins', entryOf('one-wins', `${i}`))),
  )
  const taken = answers.flatMap(({ status }, i) => (status === 202 ? [`${i}`] : []))
  expect(taken).toHaveLength(1)
  expect(answers.filter(({ status }) => status === 422)).toHaveLength(99)
  await drained()
  expect((await rowsOf('one-wins')).map(({ message }) => message)).toEqual(taken)
}, 60_000)

it('answers alike after the rows were stored, and after Redis was killed and has read its file again', async () => {
  const batch = { logs: [entryOf('restart', 'a'), entryOf('restart', 'b'), { level: 'info' }] }
  const first = await send('restart', batch)
  await drained()
  expect(await send('restart', batch)).toEqual({ ...first, isReplay: true })
  await stack.processes.redis.stop({ signal: 'SIGKILL' })
  await stack.processes.redis.start()
  expect(await sendUntilTaken('restart', batch)).toEqual({ ...first, isReplay: true })
  await drained()
  expect((await rowsOf('restart')).map(({ message }) => message)).toEqual(['a', 'b'])
}, 60_000)

it('stores each entry once when the API is killed under way, again and again, and it is sent again', async () => {
  const requests = Array.from({ length: 120 }, (_, i) => {
    const logs = [0, 1].map((j) => entryOf('killed', `${i}-${j}`))
    return { key: randomUUID(), body: i % 2 === 0 ? logs[0] : { logs } }
  })
  const sending = requests.map(async ({ key, body }, i) => {
    await sleep(i * 10)
    return sendUntilTaken(key, body)
  })
  for (let kill = 0; kill < 3; kill += 1) {
    await sleep(300)
    await stack.processes.api.stop({ signal: 'SIGKILL' })
    await stack.processes.api.start()
  }
  const answers = await Promise.all(sending)
  const again = await Promise.all(requests.map(({ key, body }) => send(key, body)))
  expect(again).toEqual(answers.map(({ status, text }) => ({ status, isReplay: true, text })))
  await drained()
  const stored = await rowsOf('killed')
  const expected = requests.flatMap((_request, i) => (i % 2 === 0 ? [`${i}-0`] : [`${i}-0`, `${i}-1`]))
  expect(stored.map(({ message }) => message).toSorted()).toEqual(expected.toSorted())
}, 90_000)
