import { SettingsError } from '@sluice/runtime'
import { describe, expect, it } from 'vitest'
import { readApiConfig } from '../../src/config.ts'

const pairs = [
  ['REDIS_MEMORY_LOW_PERCENT', 'REDIS_MEMORY_HIGH_PERCENT'],
  ['QUEUE_LOW_JOBS', 'QUEUE_HIGH_JOBS'],
  ['QUEUE_AGE_LOW_S', 'QUEUE_AGE_HIGH_S'],
  ['EVENT_LOOP_DELAY_LOW_MS', 'EVENT_LOOP_DELAY_HIGH_MS'],
] as const

describe.each(pairs)('%s', (low, high) => {
  it('is rejected at the start unless it is below its high-water mark', () => {
    const read = (): unknown => readApiConfig({ [low]: '50', [high]: '50' })
    expect(read).toThrow(SettingsError)
    expect(read).toThrow(`${low} must be below ${high}`)
    expect(() => readApiConfig({ [low]: '49', [high]: '50' })).not.toThrow()
  })
})

it('the thresholds are as configured, except for bytes in flight', () => {
  const environment = Object.fromEntries(
    pairs.flatMap(([low, high], i) => [
      [low, String(10 + i)],
      [high, String(20 + i)],
    ]),
  )
  expect(readApiConfig(environment).overloadThresholds).toEqual({
    redis_memory: { low: 10, high: 20 },
    queue_depth: { low: 11, high: 21 },
    queue_age: { low: 12, high: 22 },
    event_loop_delay: { low: 13, high: 23 },
    bytes_in_flight: { low: 32_000_000, high: 48_000_000 },
  })
})

it('the defaults are valid', () => {
  expect(() => readApiConfig({})).not.toThrow()
})

it('no threshold leaves Redis without room for the workers', () => {
  expect(() => readApiConfig({ REDIS_MEMORY_HIGH_PERCENT: '96' })).toThrow('REDIS_MEMORY_HIGH_PERCENT')
})
