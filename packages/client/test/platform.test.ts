import { expect, test } from 'vitest'
import { assembleUuid, systemPlatform } from '../src/platform.ts'

test.each([
  ['with crypto.randomUUID', systemPlatform().uuid],
  ['without it', assembleUuid],
])('keys are random UUIDs of version 4, %s', (_name, uuid) => {
  const keys = Array.from({ length: 1_000 }, uuid)
  for (const key of keys)
    expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(new Set(keys).size).toBe(1_000)
})
