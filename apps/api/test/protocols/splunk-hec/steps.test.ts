import { limits } from '@sluice/schema'
import { describe, expect, it } from 'vitest'
import { jsonEvents } from '../../../src/protocols/splunk-hec/events.ts'
import { Problem } from '../../../src/problems.ts'

const max = limits.recordsPerRequestMax

describe('a body with many values', () => {
  it.each(['[]', '[] ', '{}', '"x"'])('is read in a step for each value: %s', (value) => {
    const steps = Array.from(jsonEvents(Buffer.from(value.repeat(max))))
    expect(steps.filter((step) => step === undefined).length).toBeGreaterThanOrEqual(max)
  })

  it('has at most as many values as a request may have records', () => {
    const records = jsonEvents(Buffer.from('[]'.repeat(max + 1)))
    expect(() => Array.from(records)).toThrow(Problem)
  })
})
