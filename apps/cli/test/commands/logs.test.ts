import { describe, expect, test } from 'vitest'
import { readTimeRange } from '../../src/commands/logs.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)

describe('readTimeRange', () => {
  test('ends one hour from now by default, and has no beginning', () => {
    expect(readTimeRange({}, NOW_MS)).toEqual({
      from: undefined,
      until: '2026-11-20 13:00:00.000000',
      isUntilSelected: false,
    })
  })

  test.each([
    { from: '2h', until: '1h' },
    { from: '2026-11-20T10:00:00Z', until: '2026-11-20T11:00:00Z' },
  ])('reads %j', (flags) => {
    expect(readTimeRange(flags, NOW_MS)).toEqual({
      from: '2026-11-20 10:00:00.000000',
      until: '2026-11-20 11:00:00.000000',
      isUntilSelected: true,
    })
  })

  test.each([
    [{ from: '1h', until: '2h' }, '--from must be before --until'],
    [{ from: '1h', until: '1h' }, '--from must be before --until'],
    [{ from: '2261-01-01' }, '--from is after the default of --until, one hour from now; pass --until too'],
    [{ from: 'banana' }, '--from must be a duration'],
    [{ until: 'banana' }, '--until must be a duration'],
  ])('rejects %j', (flags, reason) => {
    expect(() => readTimeRange(flags, NOW_MS)).toThrow(reason)
  })
})
