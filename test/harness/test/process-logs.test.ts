import { expect, it } from 'vitest'
import { sortLines } from '../src/process-logs.ts'

it('finds fatal lines, errors, and lines that are not JSON', () => {
  const fatal = '{"level":60,"msg":"stopped by an unexpected error"}'
  const lines = [
    '{"level":30,"msg":"working"}',
    '{"level":50,"msg":"late"}',
    '{"level":50,"msg":"late"}',
    fatal,
    'Error: 17 things',
    '    at file.ts:3:4',
    'Error: 4 things',
  ]
  expect(sortLines(lines)).toEqual({
    fatal: [fatal],
    errors: { late: 2 },
    strange: { 'Error: # things': 2 },
  })
})
