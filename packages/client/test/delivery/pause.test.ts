import { expect, test } from 'vitest'
import { Pause } from '../../src/delivery/pause.ts'

test('a success ends the pause that the client chose', () => {
  const pause = new Pause()
  pause.extend(20_000)
  pause.succeed()
  expect(pause.untilMs).toBe(0)
})

test('a success does not end a pause that the API asked for, although the client had chosen a longer one', () => {
  const pause = new Pause()
  pause.extend(20_000)
  pause.extendRequested(10_000)
  expect(pause.untilMs).toBe(20_000)
  pause.succeed()
  expect(pause.untilMs).toBe(10_000)
})

test('a pause is never shortened by another failure', () => {
  const pause = new Pause()
  pause.extendRequested(20_000)
  pause.extendRequested(10_000)
  pause.extend(5_000)
  pause.extend(1_000)
  expect(pause.untilMs).toBe(20_000)
  pause.resume()
  expect(pause.untilMs).toBe(20_000)
})
