import { expect, it } from 'vitest'
import { ItemErrors } from '../../../src/protocols/elasticsearch/item-errors.ts'

const type = 'document_parsing_exception'
const reasonOf = (text: string): string => (JSON.parse(text) as { reason: string }).reason

it('has the reason', () => {
  const errors = new ItemErrors()
  for (let count = 0; count < 2; count += 1)
    expect(JSON.parse(errors.json({ type, reason: 'r' }))).toEqual({ type, reason: 'r' })
  expect(JSON.parse(errors.json({ type: 'other', reason: 'r' }))).toEqual({ type: 'other', reason: 'r' })
})

it('has up to 160 characters of it', () => {
  const errors = new ItemErrors()
  expect(reasonOf(errors.json({ type, reason: 'x'.repeat(160) }))).toBe('x'.repeat(160))
  expect(reasonOf(errors.json({ type, reason: 'x'.repeat(161) }))).toBe(`${'x'.repeat(159)}…`)
  expect(reasonOf(errors.json({ type, reason: `${'x'.repeat(158)}😀😀` }))).toBe(
    `${'x'.repeat(158)}\u{FFFD}…`,
  )
})

it('has 512 different ones', () => {
  const errors = new ItemErrors()
  for (let i = 0; i < 512; i += 1) expect(reasonOf(errors.json({ type, reason: `r${i}` }))).toBe(`r${i}`)
  expect(reasonOf(errors.json({ type, reason: 'r512' }))).toContain('too many different reasons')
  expect(reasonOf(errors.json({ type, reason: 'r511' }))).toBe('r511')
})
