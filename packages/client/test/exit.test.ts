import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runProgram } from './support/child.ts'
import { FakeApi, neverAnswer, problem } from './support/fake-api.ts'

let api: FakeApi
beforeEach(async () => {
  api = new FakeApi()
  await api.start()
})
afterEach(() => api.stop())

const create = (options = ''): string =>
  `const client = new SluiceClient({ url: '${api.url}', apiKey: 'slk_test', onError: () => undefined, ${options} });`

describe('a process that has nothing else to do', () => {
  test('sends what was logged, and ends', async () => {
    const { code, elapsedMs } = await runProgram(
      `${create('flushIntervalMs: 60_000')} client.info('last words')`,
    )
    expect(code).toBe(0)
    expect(api.messages).toEqual(['last words'])
    expect(elapsedMs).toBeLessThan(10_000)
  })

  test('ends after two seconds if the API is not available', async () => {
    api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '60' })
    const { code, elapsedMs } = await runProgram(`${create()} client.info('last words')`)
    expect(code).toBe(0)
    expect(elapsedMs).toBeGreaterThan(2_000)
    expect(elapsedMs).toBeLessThan(12_000)
  })

  test('ends at once if it should not send', async () => {
    const { code } = await runProgram(`${create('flushOnExit: false')} client.info('never sent')`)
    expect(code).toBe(0)
    expect(api.messages).toEqual([])
  })

  test('ends at once during the pause after a failure', async () => {
    api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '60' })
    const { code, stdout } = await runProgram(`
      ${create("flushOnExit: false, flushIntervalMs: 0, onRetry: ({ delayMs }) => console.log('pause', delayMs)")}
      client.info('a')
      setTimeout(() => undefined, 100)`)
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'pause 60000\n' })
  })

  test('sends what listeners of its end log after the first flush', async () => {
    const { code } = await runProgram(`
      ${create()}
      client.info('first')
      process.once('beforeExit', () => setTimeout(() => client.info('second'), 200))`)
    expect(code).toBe(0)
    expect(api.messages.map(String).toSorted((a, b) => a.localeCompare(b))).toEqual(['first', 'second'])
  })

  test('sends what listeners of its end log, although there was nothing to send before', async () => {
    const { code } = await runProgram(`
      ${create()}
      process.once('beforeExit', () => setTimeout(() => client.info('late'), 200))`)
    expect(code).toBe(0)
    expect(api.messages).toEqual(['late'])
  })

  test('ends after two seconds although a hook logs with each request', { timeout: 20_000 }, async () => {
    const { code, elapsedMs } = await runProgram(`
      ${create("onSettled: () => client.debug('a request is over')")}
      client.info('first')
      setTimeout(() => process.exit(1), 12_000).unref()`)
    expect(code).toBe(0)
    expect(elapsedMs).toBeGreaterThan(2_000)
    expect(api.messages[0]).toBe('first')
  })

  test('has any number of clients without a warning', async () => {
    const { code, stderr } = await runProgram(`
      for (let i = 0; i < 11; i += 1) { ${create()} client.info('last words') }`)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(api.messages).toHaveLength(11)
  })
})

describe('a process that awaits its client is kept alive', () => {
  test('by close, until its timeout', async () => {
    api.defaultResponder = problem(503, 'overloaded', { 'retry-after': '60' })
    const { code, stdout } = await runProgram(`
      ${create('flushOnExit: false')}
      client.info('a')
      console.log(JSON.stringify(await client.close({ timeoutMs: 1_500 })))`)
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ accepted: 0, rejected: 0, dropped: 1, pending: 0 })
  })

  test('by close, while a request is not answered', async () => {
    api.defaultResponder = neverAnswer
    const { code, stdout } = await runProgram(`
      ${create('flushOnExit: false')}
      client.info('a')
      console.log(JSON.stringify(await client.close({ timeoutMs: 500 })))`)
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: '{"accepted":0,"rejected":0,"dropped":1,"pending":0}\n',
    })
  })

  test('by flush, until the API is available', async () => {
    api.responders = [problem(503, 'overloaded', { 'retry-after': '1' })]
    const { code, stdout } = await runProgram(`
      ${create('flushOnExit: false')}
      client.info('a')
      console.log((await client.flush()).accepted)`)
    expect({ code, stdout }).toEqual({ code: 0, stdout: '1\n' })
  })
})
