import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { EventLoopDelay } from '../../src/overload/event-loop-delay.ts'

const TURN_MS = 300
const delay = new EventLoopDelay()

afterEach(() => delay.stop())

/** Makes turns that are as long as that. */
async function beBusy(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) {
    for (const endMs = performance.now() + TURN_MS; performance.now() < endMs;);
    await sleep(0)
  }
}

it('is how late turns are, half of the time, since it was asked before', async () => {
  delay.start()
  await beBusy(6)
  expect(delay.takeMs()).toBeGreaterThan(TURN_MS / 2)
  // Too short for turns that are not late to outnumber those that were.
  await sleep(60)
  expect(delay.takeMs()).toBeLessThan(TURN_MS / 2)
})

it('is not told by one long turn among many', async () => {
  delay.start()
  delay.takeMs()
  await beBusy(1)
  await sleep(1_000)
  expect(delay.takeMs()).toBeLessThan(TURN_MS / 2)
})
