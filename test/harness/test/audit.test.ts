import { expect, it } from 'vitest'
import { compare, type Copies, type Findings, isClean } from '../src/audit.ts'
import { Journal, type Outcome } from '../src/journal.ts'

/** The findings of entries with these outcomes, that are stored as often as is said by their numbers. */
function find(outcomes: readonly Exclude<Outcome, 'pending'>[], stored: Readonly<Record<number, Copies>>) {
  const journal = new Journal('test', () => 0)
  for (const outcome of outcomes) journal.settle(journal.open(1), outcome)
  return compare(journal, new Map(Object.entries(stored).map(([number, copies]) => [Number(number), copies])))
}

const row: Copies = { rows: 1, deadLetters: 0 }
const letter: Copies = { rows: 0, deadLetters: 1 }
const twice: Copies = { rows: 2, deadLetters: 0 }
const asBoth: Copies = { rows: 1, deadLetters: 1 }

it('accepts what is acknowledged and stored once, and what may be stored or not', () => {
  const { findings, stored } = find(
    ['acknowledged', 'acknowledged', 'rejected', 'refused', 'unknown', 'refused', 'unknown'],
    { 0: row, 1: letter, 3: row, 4: row },
  )
  expect(findings).toSatisfy(isClean)
  expect(stored).toEqual({ rows: 3, deadLetters: 1, refusedButStored: 1, unknownButStored: 1 })
})

it.each<[Parameters<typeof find>, Partial<Record<keyof Findings, unknown>>]>([
  [[['acknowledged', 'acknowledged'], { 0: row }], { lost: [{ number: 1, rows: 0 }] }],
  [[['acknowledged'], { 0: twice }], { doubled: [{ number: 0, ...twice }] }],
  [[['refused'], { 0: asBoth }], { doubled: [{ number: 0, ...asBoth }] }],
  [[['unknown'], { 0: twice }], { doubled: [{ number: 0, ...twice }] }],
  [[['rejected'], { 0: row }], { storedThoughRejected: [{ number: 0 }] }],
  [[['rejected'], { 1: row, [-1]: row }], { foreign: [1, -1] }],
])('finds what is lost, doubled, rejected or foreign: %j', (args, expected) => {
  const { findings } = find(...args)
  expect(findings).toMatchObject(expected)
  expect(findings).not.toSatisfy(isClean)
})
