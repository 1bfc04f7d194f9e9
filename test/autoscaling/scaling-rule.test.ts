import { describe, expect, it } from 'vitest'
import {
  requestedWorkers,
  ScalingRule,
  type ScalingTargets,
} from '../../bench/src/autoscaling/scaling-rule.ts'

const targets: ScalingTargets = {
  oldestAgeS: 60,
  rowsPerWorker: 1_000,
  workersMin: 2,
  workersMax: 6,
  scaleDownMs: 300_000,
}

describe('requestedWorkers', () => {
  it('multiplies the workers by the age, and divides the rows', () => {
    expect(requestedWorkers({ oldestAgeS: 90, rows: 0 }, 2, targets)).toBe(3)
    expect(requestedWorkers({ oldestAgeS: 0, rows: 4_500 }, 2, targets)).toBe(5)
  })

  it('takes the higher result', () => {
    expect(requestedWorkers({ oldestAgeS: 90, rows: 4_500 }, 2, targets)).toBe(5)
    expect(requestedWorkers({ oldestAgeS: 180, rows: 4_500 }, 2, targets)).toBe(6)
  })

  it('changes nothing near a target', () => {
    expect(requestedWorkers({ oldestAgeS: 65, rows: 0 }, 3, targets)).toBe(3)
    expect(requestedWorkers({ oldestAgeS: 0, rows: 3_200 }, 3, targets)).toBe(3)
  })

  it('stays between the limits', () => {
    expect(requestedWorkers({ oldestAgeS: 0, rows: 0 }, 4, targets)).toBe(2)
    expect(requestedWorkers({ oldestAgeS: 9_000, rows: 90_000 }, 4, targets)).toBe(6)
  })
})

describe('ScalingRule', () => {
  it('starts workers at once, and stops them when nothing has requested them for the whole time', () => {
    const rule = new ScalingRule(targets)
    expect(rule.decide({ oldestAgeS: 1, rows: 5_500 }, 2, 0)).toBe(6)
    expect(rule.decide({ oldestAgeS: 1, rows: 0 }, 6, 299_000)).toBe(6)
    expect(rule.decide({ oldestAgeS: 1, rows: 0 }, 6, 301_000)).toBe(2)
  })

  it('changes nothing while no process exports the signals', () => {
    expect(new ScalingRule(targets).decide(undefined, 4, 0)).toBe(4)
  })
})
