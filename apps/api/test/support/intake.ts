// What the tests of the intake have in common.
import type { Rows } from '@sluice/row-scanner'
import type { RequestStamp } from '@sluice/rows'
import { textOfBlocks } from '@sluice/rows/testing'
import { Problem } from '../../src/problems.ts'

export const stamp: RequestStamp = {
  projectId: 'demo',
  retentionDays: 30,
  receivedAtMs: Date.UTC(2026, 10, 20),
}

export function textOf<Scope>(rows: Rows<Scope>): string {
  const bytes = Buffer.alloc(rows.byteLength)
  rows.copyTo(bytes, 0)
  return textOfBlocks(bytes)
}

/** Runs a function that is expected to throw a problem. */
export async function problemOf(run: () => unknown): Promise<Problem> {
  try {
    await run()
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  throw new Error('the body was accepted')
}
