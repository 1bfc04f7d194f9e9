import { SettingsError } from '@sluice/runtime'
import { expect, it } from 'vitest'
import { readApiConfig } from '../../src/config.ts'

it.each([
  ['REDIS_MEMORY_LOW_PERCENT', 'REDIS_MEMORY_HIGH_PERCENT', 'redis_memory'],
  ['QUEUE_LOW_JOBS', 'QUEUE_HIGH_JOBS', 'queue_depth'],
  ['QUEUE_AGE_LOW_S', 'QUEUE_AGE_HIGH_S', 'queue_age'],
  ['EVENT_LOOP_DELAY_LOW_MS', 'EVENT_LOOP_DELAY_HIGH_MS', 'event_loop_delay'],
] as const)('%s is rejected at the start unless it is below its high-water mark', (low, high, signal) => {
  const read = (): unknown => readApiConfig({ [low]: '50', [high]: '50' })
  expect(read).toThrow(SettingsError)
  const { overloadThresholds } = readApiConfig({ [low]: '49', [high]: '50' })
  expect(overloadThresholds[signal]).toEqual({ low: 49, high: 50 })
})

it('no threshold leaves Redis without room for the workers', () => {
  expect(() => readApiConfig({ REDIS_MEMORY_HIGH_PERCENT: '96' })).toThrow('REDIS_MEMORY_HIGH_PERCENT')
})
