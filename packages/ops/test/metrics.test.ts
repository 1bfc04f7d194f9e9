import { describe, expect, it } from 'vitest'
import { LabelledCounts, Metrics, type Sample } from '../src/metrics.ts'

const make = (): Metrics => new Metrics({ app: 'test', version: '1.2.3' })
/** The lines of one metric, without those that describe it. */
const linesOf = async (metrics: Metrics, name: string): Promise<string[]> =>
  (await metrics.page.text())
    .split('\n')
    .filter((line) => new RegExp(`^${name}(_bucket|_sum|_count)?[ {]`).test(line))

describe('metrics', () => {
  it('no longer export labels that are no longer read', async () => {
    const metrics = make()
    let samples: Sample[] = [
      [['x'], 1],
      [['y'], 2],
    ]
    metrics.gauge({ name: 'a_gauge', help: 'A.', labels: ['of'] }, () => samples)
    metrics.counter({ name: 'a_total', help: 'A.', labels: ['of'] }, () => samples)
    expect(await linesOf(metrics, 'a_gauge')).toEqual(['a_gauge{of="x"} 1', 'a_gauge{of="y"} 2'])
    samples = []
    expect(await linesOf(metrics, 'a_gauge')).toEqual([])
    expect(await linesOf(metrics, 'a_total')).toEqual([])
  })

  it('export the known labels of a histogram from the start', async () => {
    const metrics = make()
    const observe = metrics.histogram(
      { name: 'a_seconds', help: 'A.', label: 'result', of: ['ok', 'error'] },
      [1, 2],
    )
    observe(1.5, 'ok')
    observe(Number.NaN, 'ok')
    expect(await linesOf(metrics, 'a_seconds')).toEqual([
      'a_seconds_bucket{le="1",result="ok"} 0',
      'a_seconds_bucket{le="2",result="ok"} 1',
      'a_seconds_bucket{le="+Inf",result="ok"} 1',
      'a_seconds_sum{result="ok"} 1.5',
      'a_seconds_count{result="ok"} 1',
      'a_seconds_bucket{le="1",result="error"} 0',
      'a_seconds_bucket{le="2",result="error"} 0',
      'a_seconds_bucket{le="+Inf",result="error"} 0',
      'a_seconds_sum{result="error"} 0',
      'a_seconds_count{result="error"} 0',
    ])
  })
})

describe('labelled counts', () => {
  it('have the known values from the start', () => {
    expect([...new LabelledCounts(2, ['a', 'b'])]).toEqual([
      [['a'], 0],
      [['b'], 0],
    ])
  })

  it('count further values up to the limit, and the rest as other', () => {
    const counts = new LabelledCounts(2)
    for (const value of ['a', 'b', 'c', 'a', 'd']) counts.add(value)
    counts.add('b', 5)
    expect([...counts]).toEqual([
      [['a'], 2],
      [['b'], 6],
      [['other'], 2],
    ])
  })
})
