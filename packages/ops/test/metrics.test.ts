import { expect, it } from 'vitest'
import { LabelledCounts, Metrics, type Sample } from '../src/metrics.ts'

const make = (): Metrics => new Metrics({ app: 'test', version: '1.2.3' })
/** The lines of one metric, without those that describe it. */
const linesOf = async (metrics: Metrics, name: string): Promise<string[]> =>
  (await metrics.page.text())
    .split('\n')
    .filter((line) => new RegExp(`^${name}(_bucket|_sum|_count)?[ {]`).test(line))

it('no longer exports labels that are no longer read', async () => {
  const metrics = make()
  let samples: Sample[] = [[['x'], 1]]
  metrics.gauge({ name: 'a_gauge', help: 'A.', labels: ['of'] }, () => samples)
  metrics.counter({ name: 'a_total', help: 'A.', labels: ['of'] }, () => samples)
  expect(await linesOf(metrics, 'a_gauge')).toEqual(['a_gauge{of="x"} 1'])
  samples = []
  expect(await linesOf(metrics, 'a_gauge')).toEqual([])
  expect(await linesOf(metrics, 'a_total')).toEqual([])
})

it('exports the known labels of a histogram from the start, and ignores what is not finite', async () => {
  const metrics = make()
  const observe = metrics.histogram(
    { name: 'a_seconds', help: 'A.', label: 'result', of: ['ok', 'error'] },
    [2],
  )
  observe(1.5, 'ok')
  observe(Number.NaN, 'ok')
  expect(await linesOf(metrics, 'a_seconds')).toEqual([
    'a_seconds_bucket{le="2",result="ok"} 1',
    'a_seconds_bucket{le="+Inf",result="ok"} 1',
    'a_seconds_sum{result="ok"} 1.5',
    'a_seconds_count{result="ok"} 1',
    'a_seconds_bucket{le="2",result="error"} 0',
    'a_seconds_bucket{le="+Inf",result="error"} 0',
    'a_seconds_sum{result="error"} 0',
    'a_seconds_count{result="error"} 0',
  ])
})

it('counts known values from the start, further ones up to the limit, and the rest as other', () => {
  const counts = new LabelledCounts(2, ['a'])
  expect([...counts]).toEqual([[['a'], 0]])
  for (const value of ['b', 'c', 'a', 'd']) counts.add(value)
  counts.add('b', 5)
  expect(Object.fromEntries([...counts].map(([[label], count]) => [label, count]))).toEqual({
    a: 1,
    b: 6,
    other: 2,
  })
})
