import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { EventLoopDelay } from '../../src/overload/event-loop-delay.ts'

const TURN_MS = 300
const delay = new EventLoopDelay()

afterEach(() => delay.stop())

/** Blocks the event loop for `TURN_MS` in each turn. */
async function blockFor(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) {
    for (const endMs = performance.now() + TURN_MS; performance.now() < endMs;);
    await sleep(0)
  }
}

it('is the median delay since the last call', async () => {
  delay.start()
  await blockFor(6)
  expect(delay.takeMs()).toBeGreaterThan(TURN_MS / 2)
  // Short enough that the late turns would still be the majority if they were counted again.
  await sleep(60)
  expect(delay.takeMs()).toBeLessThan(TURN_MS / 2)
})

it('is not affected by a single long turn', async () => {
  delay.start()
  delay.takeMs()
  await blockFor(1)
  await sleep(1_000)
  expect(delay.takeMs()).toBeLessThan(TURN_MS / 2)
})
