import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FakeApi, neverAnswer } from '../../client/test/support/fake-api.ts'
import { ApplicationProcess } from './support/application-process.ts'

let api: FakeApi
let application: ApplicationProcess

beforeEach(async () => {
  api = new FakeApi()
  await api.start()
})
afterEach(async () => {
  await application.kill()
  await api.stop()
})

function start(options: object, transport: object = {}): void {
  const all = { url: api.url, apiKey: 'slk_test', flushTimeoutMs: 100, ...options }
  application = new ApplicationProcess({
    transport: { target: '@sluice/pino-transport', options: all, ...transport },
  })
}

describe('an application that logs faster than the API accepts', () => {
  it('waits with `wait` and `sync` for an API that is down, and is not ended by pino', async () => {
    await api.stop()
    start({ whenFull: 'wait', queueEntriesMax: 500 }, { sync: true })
    // Two buffers of pino.
    const tookMs = (await application.ask({ act: 'log', from: 0, to: 8_000, pad: 1_000 })) as number
    expect(tookMs).toBeGreaterThan(3_000)
    expect(await application.end({ act: 'end' })).toMatchObject({ code: 0 })
    expect(application.stderr).not.toContain('Error')
  })

  it('does not wait if the API is unavailable, and its memory is bounded', async () => {
    api.responder = neverAnswer
    start({})
    // Until the API is known to be unavailable, there is a backlog.
    await application.ask({ act: 'log', from: 0, to: 200_000, turns: 100, pad: 1_000 })
    // A GB of lines in some seconds: without a bound, they would be in memory.
    await application.ask({ act: 'log', from: 0, to: 800_000, turns: 100, pad: 1_000 })
    const bytes = (await application.ask({ act: 'memory' })) as number
    // On a busy machine, garbage is collected later: 412 were seen. Without a bound, it would be above 1,000.
    expect(bytes / 1024 ** 2).toBeLessThan(700)
    await application.end({ act: 'end' })
    expect(application.stderr).toContain('log entries were dropped')
  })
})
