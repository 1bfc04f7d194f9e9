import { afterAll, expect, test } from 'vitest'
import { testInstallation } from '../installation.ts'

const { sluice, dropDatabase, database } = testInstallation()

afterAll(async () => {
  await dropDatabase()
  await dropDatabase(`${database}_new`)
})

test('migrate reports the applied migrations, and that none is missing', async () => {
  const elsewhere = ['--clickhouse-database', `${database}_new`]
  expect(await sluice('migrate', ...elsewhere)).toContain('Applied 1 (logs).\n')
  await sluice('migrate')
  expect(await sluice('migrate')).toMatch(/is up to date: \d+ migrations, 0 of them applied now\.\n$/)
})
