import { expect, it } from 'vitest'
import { compare, isClean, type Copies } from '../src/audit.ts'
import { Journal, type Outcome } from '../src/journal.ts'

function journalOf(outcomes: readonly Exclude<Outcome, 'pending'>[]): Journal {
  const journal = new Journal('test', () => 0)
  for (const [index, number] of journal.open(outcomes.length).entries()) {
    journal.settle([number], outcomes[index] ?? 'unknown')
  }
  return journal
}

const row: Copies = { rows: 1, deadLetters: 0 }

it('accepts acknowledged entries that are stored once, as a row or as a dead letter', () => {
  const copies = new Map([
    [0, row],
    [1, { rows: 0, deadLetters: 1 }],
  ])
  const { findings, stored } = compare(journalOf(['acknowledged', 'acknowledged', 'rejected']), copies)
  expect(findings).toSatisfy(isClean)
  expect(stored).toEqual({ rows: 1, deadLetters: 1, refusedButStored: 0, unknownButStored: 0 })
})

it('finds an acknowledged entry that is not stored', () => {
  const { findings } = compare(journalOf(['acknowledged', 'acknowledged']), new Map([[0, row]]))
  expect(findings.lost).toMatchObject([{ number: 1, rows: 0 }])
})

it.each(['acknowledged', 'refused', 'unknown'] as const)(
  'finds an entry that is stored twice: %s',
  (outcome) => {
    for (const copies of [
      { rows: 2, deadLetters: 0 },
      { rows: 1, deadLetters: 1 },
    ]) {
      const { findings } = compare(journalOf([outcome]), new Map([[0, copies]]))
      expect(findings.doubled).toMatchObject([{ number: 0, ...copies }])
    }
  },
)

it('allows an entry that was refused or got no response to be stored once or not at all', () => {
  const journal = journalOf(['refused', 'unknown', 'refused', 'unknown'])
  const { findings, stored } = compare(journal, new Map([0, 1].map((number) => [number, row])))
  expect(findings).toSatisfy(isClean)
  expect(stored).toMatchObject({ refusedButStored: 1, unknownButStored: 1 })
})

it('finds a stored entry that was rejected, and stored entries that were never sent', () => {
  const copies = new Map([0, 1, -1].map((number) => [number, row]))
  const { findings } = compare(journalOf(['rejected']), copies)
  expect(findings.storedThoughRejected).toMatchObject([{ number: 0 }])
  expect(findings.foreign).toEqual([1, -1])
})
