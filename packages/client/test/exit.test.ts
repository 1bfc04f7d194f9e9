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
    const { client, api, log, close } = fakeClient({ flushOnExit: true, flushIntervalMs: 60_000 })
    api.isAccepting = true
    for (let i = 0; i <= 2; i += 1) {
      if (i > 0) log(1)
      becomeIdle()
      await pass(0)
      expect(client.stats.accepted).toBe(i)
    }
    await close()
  })

  test('it sends for two seconds at most if the API is not available', async () => {
    const { api, log, close } = fakeClient({ flushOnExit: true })
    log(1)
    becomeIdle()
    const keptAlive = vi.getTimerCount()
    await pass(0)
    api.last.fail(refused())
    await pass(1_900)
    expect(api.requests.length).toBeGreaterThan(1)
    await pass(100)
    expect(vi.getTimerCount()).toBeLessThan(keptAlive)
    await close()
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
    await fake.close()
  })

  test('closed clients, and those that should not, do not', async () => {
    const listeners = process.listenerCount('beforeExit')
    const fakes = Array.from({ length: 11 }, () => fakeClient({ flushOnExit: true }))
    expect(process.listenerCount('beforeExit')).toBe(listeners + 1)
    for (const { close } of fakes) await close()
    fakeClient({ flushOnExit: false })
    expect(process.listenerCount('beforeExit')).toBe(listeners)
  })
})

describe('a process', () => {
  let api: FakeApi
  beforeEach(async () => {
    api = new FakeApi()
    await api.start()
  })
  afterEach(() => api.stop())

  const run = (options: string, program: string): ReturnType<typeof runProgram> =>
    runProgram(`const client = new SluiceClient({ url: '${api.url}', apiKey: 'slk_test', ${options} })
      client.info('last words')
      ${program}`)

  test('that has nothing else to do sends what was logged, and ends', async () => {
    expect(await run('flushIntervalMs: 60_000', '')).toMatchObject({ code: 0 })
    expect(api.storedMessages).toEqual(['last words'])
  })

  test('is not kept alive by a pause after a failure', async () => {
    api.responder = problem(503, 'overloaded', { 'retry-after': '60' })
    const options = 'flushOnExit: false, flushIntervalMs: 0, onRetry: ({ delayMs }) => console.log(delayMs)'
    expect(await run(options, 'setTimeout(() => undefined, 100)')).toEqual({ code: 0, stdout: '60000\n' })
  })

  test('is kept alive by a close until its timeout, also during a pause', async () => {
    api.responder = problem(503, 'overloaded', { 'retry-after': '60' })
    const { stdout } = await run('', 'console.log(JSON.stringify(await client.close({ timeoutMs: 200 })))')
    expect(JSON.parse(stdout)).toEqual({ accepted: 0, rejected: 0, dropped: 1, pending: 0 })
  })
})
