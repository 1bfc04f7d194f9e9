import { expect, test } from 'vitest'
import { NamedZones } from '../../src/times/named-zones.ts'

test('a name that is no zone has none', () => {
  const zones = new NamedZones()
  expect(zones.get('Europe/Berlin')?.offsetAt(2026, 7, 1, 12, 0)).toBe('+02:00')
  expect(zones.get('Nowhere/Else')).toBeUndefined()
  expect(zones.get('Nowhere/Else')).toBeUndefined()
})

test('the names that lines invent do not take memory without a limit', () => {
  const zones = new NamedZones()
  for (let count = 0; count < 64; count += 1) zones.get(`Nowhere/A${count}`)
  expect(zones.get('Europe/Berlin')).toBeUndefined()
})
