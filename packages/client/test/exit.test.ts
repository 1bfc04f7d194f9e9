import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { runProgram } from './support/child.ts'
import { FakeApi, problem } from './support/fake-api.ts'
import { fakeClient } from './support/fake-client.ts'
import { pass, refused } from './support/fake-fetch.ts'

/** The event that Node emits again and again, until nothing keeps the process alive. */
const becomeIdle = (): boolean => process.emit('beforeExit', 0)

describe('when the process has nothing else to do', () => {
  beforeEach(() => void vi.useFakeTimers())

  test('the client sends what was logged, also by listeners of the event', async () => {
    const { client, api, log } = fakeClient({ flushOnExit: true, flushIntervalMs: 60_000 })
    api.isAccepting = true
    becomeIdle()
    await pass(0)
    for (let i = 1; i <= 2; i += 1) {
      log(1)
      becomeIdle()
      await pass(0)
      expect(client.stats.accepted).toBe(i)
    }
    await client.close()
  })

  test('it sends for two seconds at most if the API is not available', async () => {
    const { client, api, log } = fakeClient({ flushOnExit: true })
    log(1)
    becomeIdle()
    const keptAlive = vi.getTimerCount()
    await pass(0)
    api.last.fail(refused())
    await pass(1_900)
    const attempts = api.requests.length
    expect(attempts).toBeGreaterThan(1)
    await pass(100)
    expect(vi.getTimerCount()).toBeLessThan(keptAlive)
    await closeNow(client)
  })

  test('it sends for two seconds at most although a hook logs with each request', async () => {
    const fake = fakeClient({ flushOnExit: true, onSettled: () => fake.log(1) })
    fake.log(1)
    for (let i = 0; i < 100; i += 1) {
      becomeIdle()
      await pass(100)
      if (i < 30) fake.api.last.accept()
    }
    const { length } = fake.api.requests
    expect(length).toBeGreaterThan(15)
    expect(length).toBeLessThan(50)
    await closeNow(fake.client)
  })

  test('closed clients, and those that should not, do not', async () => {
    const listeners = process.listenerCount('beforeExit')
    const clients = Array.from({ length: 11 }, () => fakeClient({ flushOnExit: true }))
    expect(process.listenerCount('beforeExit')).toBe(listeners + 1)
    for (const { client } of clients) await client.close()
    fakeClient({ flushOnExit: false })
    expect(process.listenerCount('beforeExit')).toBe(listeners)
  })
})

async function closeNow(client: ReturnType<typeof fakeClient>['client']): Promise<void> {
  const closed = client.close({ timeoutMs: 0 })
  await pass(0)
  await closed
}

describe('a process', () => {
  let api: FakeApi
  beforeEach(async () => {
    api = new FakeApi()
    await api.start()
  })
  afterEach(() => api.stop())

  const create = (options: string): string =>
    `const client = new SluiceClient({ url: '${api.url}', apiKey: 'slk_test', ${options} });`

  test('that has nothing else to do sends what was logged, and ends', async () => {
    const { code } = await runProgram(`${create('flushIntervalMs: 60_000')} client.info('last words')`)
    expect(code).toBe(0)
    expect(api.messages).toEqual(['last words'])
  })

  test('is not kept alive by a pause after a failure', async () => {
    api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '60' })
    const { code, stdout } = await runProgram(`
      ${create("flushOnExit: false, flushIntervalMs: 0, onRetry: ({ delayMs }) => console.log('pause', delayMs)")}
      client.info('a')
      setTimeout(() => undefined, 100)`)
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'pause 60000\n' })
  })

  test('is kept alive by a close until its timeout, also during a pause', async () => {
    api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '60' })
    const { code, stdout } = await runProgram(`
      ${create('flushOnExit: false')}
      client.info('a')
      console.log(JSON.stringify(await client.close({ timeoutMs: 200 })))`)
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ accepted: 0, rejected: 0, dropped: 1, pending: 0 })
  })
})
