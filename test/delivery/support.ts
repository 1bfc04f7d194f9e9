import { Fleet, type FleetOptions } from '@sluice/harness/fleet'
import type { Journal } from '@sluice/harness/journal'
import { isExactlyOnce } from '@sluice/harness/settle'
import type { App } from '@sluice/local'
import { expect, onTestFinished } from 'vitest'

/** The environment of workers whose waits are shorter: see shorter-waits.ts. */
export const shorterWaits = { NODE_OPTIONS: `--import=${import.meta.resolve('./shorter-waits.ts')}` }

/** Prints a time that a test measured. No test asserts it, because it depends on how busy the machine is. */
export function report(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Starts a fleet without workers, which stops at the end of the test. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const fleet = await Fleet.start(options)
  onTestFinished(() => fleet.stop())
  return fleet
}

export async function expectQueued(fleet: Fleet, waiting: number, active: number): Promise<void> {
  expect(await fleet.queued()).toEqual({ waiting, active })
}

/** Drains the queues, stops the workers, and expects that each entry of the journal is a row. */
export async function expectAllStored(fleet: Fleet, journal: Journal): Promise<void> {
  const settlement = await fleet.settle(journal)
  expect(settlement).toSatisfy(isExactlyOnce)
  expect(settlement.stored).toMatchObject({ rows: journal.size, deadLetters: 0 })
}

/** The status of /readyz, and its body. */
export async function readiness({ opsUrl }: App): Promise<string> {
  const response = await fetch(`${opsUrl}/readyz`)
  return `${response.status} ${await response.text()}`
}
