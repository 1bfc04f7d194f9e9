import { expect, it } from 'vitest'
import { readApiConfig } from '../../src/config.ts'
import { bodyLimits, overloadThresholds } from '../../src/overload/overload-monitor.ts'

it('every low-water mark is below its high-water mark', () => {
  const lowest = readApiConfig({
    REDIS_MEMORY_HIGH_PERCENT: '2',
    QUEUE_HIGH_JOBS: '2',
    QUEUE_AGE_HIGH_S: '2',
    EVENT_LOOP_DELAY_HIGH_MS: '2',
  })
  for (const { high, low } of Object.values(overloadThresholds(lowest))) expect(low).toBeLessThan(high)
  expect(overloadThresholds(readApiConfig({}))).toEqual({
    redis_memory: { high: 80, low: 70 },
    queue_depth: { high: 5_000_000, low: 4_000_000 },
    queue_age: { high: 86_400, low: 43_200 },
    event_loop_delay: { high: 500, low: 250 },
  })
})

it('one project can hold two thirds of the bodies of a process', () => {
  const [bytesMax, projectBytesMax] = [192 * 1024 ** 2, 128 * 1024 ** 2]
  expect(bodyLimits(readApiConfig({}))).toEqual({ bytesMax, projectBytesMax })
})

it('no threshold leaves Redis without room for the workers', () => {
  expect(() => readApiConfig({ REDIS_MEMORY_HIGH_PERCENT: '96' })).toThrow('REDIS_MEMORY_HIGH_PERCENT')
})
