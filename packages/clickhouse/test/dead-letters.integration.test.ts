import { randomUUID } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { type DeadLetter, deadLetterWriter } from '../src/dead-letters.ts'
import { StillRunningError } from '../src/insert-once.ts'
import { queryIds, type QueryWatcher } from '../src/query-watch.ts'
import { deadLettersTable } from '../src/tables.ts'
import { countRows, insertOptions, loseRows, openTestDatabase, unwatched } from './test-database.ts'

const clickhouse = await openTestDatabase()
const options = { ...insertOptions, client: clickhouse, wallMs: Date.now }
const deadLetters = deadLetterWriter({ ...options, watch: unwatched })

afterAll(() => clickhouse.close())

function letterOf(projectId: string): DeadLetter {
  return { code: 'INCORRECT_DATA', reason: 'a reason', text: JSON.stringify({ project_id: projectId }) }
}

const count = (projectId: string): Promise<number> => countRows(clickhouse, deadLettersTable, projectId)

it('stores a dead letter once, for any number of attempts and tokens', async () => {
  const projectId = randomUUID()
  const letter = letterOf(projectId)
  await deadLetters.prepare([letter], randomUUID(), false).run()
  await deadLetters.prepare([letter], randomUUID(), true).run()
  expect(await count(projectId)).toBe(1)
})

it('stores a dead letter if ClickHouse has its token without it', async () => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const letter = letterOf(projectId)
  await deadLetters.prepare([letter], token, false).run()
  await loseRows(clickhouse, deadLettersTable, projectId)
  await deadLetters.prepare([letter], token, false).run()
  expect(await count(projectId)).toBe(0)
  await deadLetters.prepare([letter], token, true).run()
  expect(await count(projectId)).toBe(1)
})

it('does not send a dead letter while an earlier attempt is running', async () => {
  const projectId = randomUUID()
  const token = randomUUID()
  const isRunning = async (queryId: string): Promise<boolean> => queryId === queryIds.deadLetter(token)
  const watch: QueryWatcher = { ...unwatched, isRunning }
  const watched = deadLetterWriter({ ...options, watch })
  const attempt = watched.prepare([letterOf(projectId)], token, true).run()
  await expect(attempt).rejects.toBeInstanceOf(StillRunningError)
  expect(await count(projectId)).toBe(0)
})
