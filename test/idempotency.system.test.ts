import { eventually, pause, postLogs } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'
import { drainQueue, isEmpty } from '@sluice/harness/drain'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'

let installation: Installation

beforeAll(async () => {
  installation = await startTestInstallation({ worker: { environment: { LOCK_DURATION_MS: '2000' } } })
})

afterAll(() => installation?.stop())

interface Answer {
  readonly status: number
  readonly isReplay: boolean
  readonly text: string
}

async function send(key: string, body: unknown): Promise<Answer> {
  const { status, headers, text } = await postLogs(installation, body, { 'idempotency-key': key })
  return { status, isReplay: headers.get('idempotency-replayed') === 'true', text }
}

/** Retries until the request is accepted. */
const sendUntilAccepted = (key: string, body: unknown): Promise<Answer> =>
  eventually(async () => {
    const answer = await send(key, body)
    expect(answer.status).toBe(202)
    return answer
  })

function rowsOf(service: string): Promise<{ id: string; message: string }[]> {
  const query =
    'SELECT toString(id) AS id, message FROM logs WHERE service = {service: String} ORDER BY message'
  return select(installation.clickhouse, query, { service })
}

async function drain(): Promise<void> {
  expect(await drainQueue(installation.redisUrl, queueNames(installation.prefix), 20_000)).toSatisfy(isEmpty)
}

const entryOf = (service: string, message = 'm'): object => ({ level: 'info', message, service })

it('stores a hundred concurrent requests with the same key as one row', async () => {
  const entry = entryOf('at-once')
  const answers = await Promise.all(Array.from({ length: 100 }, () => send('at-once', entry)))
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 202))
  expect(answers.filter(({ isReplay }) => isReplay)).toHaveLength(99)
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
  await drain()
  expect(await rowsOf('at-once')).toEqual([
    { id: (JSON.parse(answers[0]?.text ?? '') as { id: string }).id, message: 'm' },
  ])
})

it('replays the response after the rows were stored, and after Redis was killed and has reloaded its data', async () => {
  const batch = { logs: [entryOf('restart', 'a'), entryOf('restart', 'b'), { level: 'info' }] }
  const first = await send('restart', batch)
  await drain()
  expect(await send('restart', batch)).toEqual({ ...first, isReplay: true })
  await installation.processes.redis.stop({ signal: 'SIGKILL' })
  await installation.processes.redis.start()
  expect(await sendUntilAccepted('restart', batch)).toEqual({ ...first, isReplay: true })
  await drain()
  expect((await rowsOf('restart')).map(({ message }) => message)).toEqual(['a', 'b'])
})

it('stores each entry once when the API is killed repeatedly, and requests are retried', async () => {
  const requests = Array.from({ length: 120 }, (_, i) => {
    const logs = [0, 1].map((j) => entryOf('killed', `${i}-${j}`))
    return { key: randomUUID(), body: i % 2 === 0 ? logs[0] : { logs } }
  })
  const sending = requests.map(async ({ key, body }, i) => {
    await pause(i * 10)
    return sendUntilAccepted(key, body)
  })
  for (let kill = 0; kill < 3; kill += 1) {
    await pause(300)
    await installation.processes.api.stop({ signal: 'SIGKILL' })
    await installation.processes.api.start()
  }
  const answers = await Promise.all(sending)
  const again = await Promise.all(requests.map(({ key, body }) => send(key, body)))
  expect(again).toEqual(answers.map(({ status, text }) => ({ status, isReplay: true, text })))
  await drain()
  const stored = await rowsOf('killed')
  const expected = requests.flatMap((_request, i) => (i % 2 === 0 ? [`${i}-0`] : [`${i}-0`, `${i}-1`]))
  expect(stored.map(({ message }) => message).toSorted()).toEqual(expected.toSorted())
}, 90_000)
