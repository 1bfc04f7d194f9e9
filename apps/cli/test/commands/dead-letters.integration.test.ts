import { afterAll, beforeAll, expect, test } from 'vitest'
import { SLUICE } from '../../src/options.ts'
import { run } from '../../src/run.ts'
import { testInstallation } from '../installation.ts'

const { context, sluice, connect, database, deleteRedisKeys } = testInstallation()

beforeAll(async () => {
  await sluice('migrate')
  await sluice('projects', 'create', 'shop')
})
afterAll(async () => {
  const client = connect({ database: 'default' })
  await client.command({ query: `DROP DATABASE IF EXISTS ${database} SYNC` })
  await client.close()
  await deleteRedisKeys()
})

test.each([[['--project', 'shop']], [[]]])('no dead letters are reported with %j', async (flags) => {
  const used = context()
  expect(await run(['dead-letters', 'list', ...flags], used)).toBe(0)
  expect(used.written).toEqual({ stdout: '', stderr: 'There are no dead letters.\n' })
})

test.each([[[]], [['--json']]])('a project that does not exist is reported with %j', async (flags) => {
  const used = context()
  expect(await run(['dead-letters', 'list', '--project', 'nope', ...flags], used)).toBe(1)
  expect(used.written).toEqual({
    stdout: '',
    stderr: `sluice: there is no project nope; \`${SLUICE} projects list\` lists the projects\n`,
  })
})
