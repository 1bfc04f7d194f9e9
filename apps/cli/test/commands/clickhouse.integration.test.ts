import { expect, test } from 'vitest'
import { testInstallation } from '../installation.ts'

const { sluice, failing } = testInstallation()

test('migrate reports the applied migrations, and that none is missing', async () => {
  expect(await sluice('migrate')).toContain('Applied 1 (logs).\n')
  expect(await sluice('migrate')).toMatch(/is up to date: \d+ migrations, 0 of them applied now\.\n$/)
})

test('purge --all says how much it would delete, and needs --yes', async () => {
  const pass = 'Pass --yes to confirm'
  expect(await failing(['dead-letters', 'purge', '--all'])).toBe(
    `sluice: this would permanently delete 0 dead letters. ${pass}\n`,
  )
  expect(await failing(['failed-chunks', 'purge', '--all'])).toBe(
    `sluice: this would permanently delete 0 failed chunks with their rows. ${pass}\n`,
  )
  for (const group of ['dead-letters', 'failed-chunks'])
    expect(await sluice(group, 'purge', '--all', '--yes')).toBe('0 removed.\n')
})

test.each(['01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2', 'banana'])('no dead letter has the id %s', async (id) => {
  for (const action of ['show', 'retry'])
    expect(await failing(['dead-letters', action, id])).toMatch(new RegExp(`^sluice: .*${id}`))
})
