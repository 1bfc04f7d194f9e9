import { expect, it } from 'vitest'
import { findingsOf, linePath, type Point } from '../src/pipeline.ts'
import { fakePipeline } from './support/fake-pipeline.ts'

it('draws a line with gaps', () => {
  const { history } = fakePipeline(0, false)
  const line = (...values: (number | null)[]): string => {
    const points = values.map((backlog, at): Point => ({
      at,
      figures: Object.assign({}, history[0]?.figures, { backlog }) as Point['figures'],
    }))
    return linePath(points, 'backlog', 0, values.length - 1, 10)
  }
  expect(line(0, 5, 10)).toBe('M0.0000 1.0000L0.5000 0.5000L1.0000 0.0000')
  expect(line(10, null, 10)).toBe('M0.0000 0.0000M1.0000 0.0000')
  expect(line()).toBe('')
})

it('says what needs attention, the worst first', () => {
  expect(findingsOf(fakePipeline(0, false), 0)).toEqual([])
  const bad = findingsOf(fakePipeline(0, true), 1)
  expect(bad.map(([kind]) => kind).join(' ')).toMatch(/^(error )+(warn ?)+$/)
  const texts = bad.map(([, text]) => text).join('\n')
  const parts = [
    'Shard 1 does not',
    '4 chunks have',
    '/18 has stopped',
    'ClickHouse does not',
    '5 min',
    '91 %',
    '1 row was',
  ]
  for (const part of parts) expect(texts).toContain(part)
  expect(findingsOf({ ...fakePipeline(0, false), processes: [] }, 0)[0]?.[0]).toBe('error')
})
