import { ShardCount } from '@sluice/queue'
import { createLogger, type RedisConnection } from '@sluice/runtime'
import { EventEmitter } from 'node:events'
import { expect, it, onTestFinished, vi } from 'vitest'
import { Reporting } from '../src/reporting.ts'

const call = (): Promise<never> => Promise.reject(new Error('no answer'))

it('logs once that the process is not ready any more, without passwords, and once that it is again', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const logger = createLogger('test', 'silent')
  const [error, info] = [vi.spyOn(logger, 'error'), vi.spyOn(logger, 'info')]
  const redis = Object.assign(new EventEmitter(), { status: 'ready', call }) as unknown as RedisConnection
  let reasons: string[] = ['the process starts']
  const reporting = new Reporting({
    role: 'worker',
    version: '1.2.3',
    processId: 'p',
    config: { OPS_HOST: '127.0.0.1', OPS_PORT: 0, SLUICE_PREFIX: 'test', REDIS_MEMORY_BYTES: 1 } as never,
    redis,
    shards: new ShardCount(redis, 'test', 1),
    registry: { readiness: { ready: true, reasons: [] } },
    checks: [],
    reasons: () => reasons,
    wallMs: Date.now,
    monotonicMs: () => 0,
    logger,
  })
  await reporting.start()
  for (const next of [[], ['no answer of http://me:secret@host'], ['no answer'], [], []]) {
    reasons = next
    vi.advanceTimersByTime(1_000)
  }
  expect(error.mock.calls).toEqual([[{ reasons: ['no answer of http://host'] }, 'not ready']])
  expect(info.mock.calls).toEqual([['ready']])
  await reporting.stop()
})
