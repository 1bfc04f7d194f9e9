// What the tests of the intake and of the protocols' decoders have in common.
import type { Owned, Rows, RowScanner } from '@sluice/row-scanner'
import { EntryValidator, IdSource, type RequestStamp } from '@sluice/rows'
import { Intake, type ParsedRequest } from '../../src/intake/intake.ts'
import { Problem } from '../../src/problems.ts'
import { Turns } from '../../src/turns.ts'

export const stamp: RequestStamp = {
  projectId: 'demo',
  retentionDays: 30,
  receivedAtMs: Date.UTC(2026, 10, 20),
}

export const validator = new EntryValidator()

const ID = '01a1fb4d-5bd1-74f9-83e0-56d2211cd84d'
/** Gives every row the same id. */
export const sameId = {
  next: (): string => ID,
  write: (memory: Buffer, to: number): void => void memory.write(ID, to),
}

/** Leaves everything to the parser and the decoders. */
export const noScanner: Pick<RowScanner, 'scan' | 'scanRecords'> = {
  scan: () => undefined,
  scanRecords: (scopeLogs, at) => ({ rows: undefined, bytes: scopeLogs.length - at }),
}

export function textOf<Scope>(rows: Rows<Scope>): string {
  const bytes = Buffer.alloc(rows.byteLength)
  rows.copyTo(bytes, 0)
  return bytes.toString()
}

/** Parses a body that must not be an OTLP request. */
export async function parseEntries(
  intake: Intake,
  ...args: Parameters<Intake['parse']>
): Promise<ParsedRequest<Owned>> {
  const parsed = await intake.parse(...args)
  if (parsed === undefined) throw new Error('the body is an OTLP request')
  return parsed
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

/** Steps in a slice of `steppedIntake`. */
export const STEPS_PER_SLICE = 5

/** An intake for which each look at the clock is a millisecond later, and the number of turns that it took. */
export function steppedIntake(scanner?: Pick<RowScanner, 'scan' | 'scanRecords'>) {
  const taken = { turns: 0 }
  let nowMs = 0
  const turns = new Turns(
    (turn) => {
      taken.turns += 1
      setImmediate(turn)
    },
    () => (nowMs += 1),
  )
  return { intake: new Intake(validator, new IdSource(Date.now), scanner, turns), taken }
}
