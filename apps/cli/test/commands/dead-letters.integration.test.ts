import { afterAll, beforeAll, expect, test } from 'vitest'
import { run } from '../../src/run.ts'
import { testInstallation } from '../installation.ts'

const { context, sluice, dropDatabase } = testInstallation()

beforeAll(() => sluice('migrate'))
afterAll(() => dropDatabase())

test.each([[['--project', 'shop']], [[]]])('no dead letters are reported with %j', async (flags) => {
  const used = context()
  expect(await run(['dead-letters', 'list', ...flags], used)).toBe(0)
  expect(used.written).toEqual({ stdout: '', stderr: 'There are no dead letters.\n' })
})

test.each([
  ['01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2', 'there is no dead letter'],
  ['banana', 'banana'],
])('an id that no dead letter has is reported: %s', async (id, reason) => {
  for (const action of ['show', 'retry']) {
    const used = context()
    expect(await run(['dead-letters', action, id], used)).toBe(1)
    expect(used.written.stderr).toMatch(new RegExp(`^sluice: .*${reason}`))
  }
})
