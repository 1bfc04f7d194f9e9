import { createLogger, type ClickHouseClient } from '@sluice/runtime'
import { deadLettersTable } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { DeadLetters } from '../src/dead-letters.ts'
import { countRows, loseRows, openTestDatabase } from './test-database.ts'

let clickhouse: ClickHouseClient
let deadLetters: DeadLetters

beforeAll(async () => {
  clickhouse = await openTestDatabase()
  deadLetters = new DeadLetters(clickhouse, randomUUID, Date.now, {
    areTokensAtomic: false,
    sleep: () => Promise.resolve(),
    logger: createLogger('test', 'silent'),
  })
})

afterAll(async () => {
  await clickhouse.close()
})

function letterOf(projectId: string): { code: string; reason: string; text: string } {
  return { code: 'INCORRECT_DATA', reason: 'a reason', text: JSON.stringify({ project_id: projectId }) }
}

const count = (projectId: string): Promise<number> => countRows(clickhouse, deadLettersTable, projectId)

it('sets a row aside once, however often it is tried and under whatever token', async () => {
  const projectId = randomUUID()
  const letter = letterOf(projectId)
  const tryToAdd = deadLetters.tries(letter, randomUUID(), false)
  await tryToAdd()
  await tryToAdd()
  await deadLetters.tries(letter, randomUUID(), true)()
  expect(await count(projectId)).toBe(1)
})

it('sets a row aside whose token ClickHouse has without it', async () => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const letter = letterOf(projectId)
  await deadLetters.tries(letter, token, false)()
  await loseRows(clickhouse, deadLettersTable, projectId)
  await deadLetters.tries(letter, token, false)()
  expect(await count(projectId)).toBe(0)
  await deadLetters.tries(letter, token, true)()
  expect(await count(projectId)).toBe(1)
})
