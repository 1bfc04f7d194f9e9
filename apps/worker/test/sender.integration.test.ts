import { createLogger, type ClickHouseClient } from '@sluice/runtime'
import { encodeFrame, logsTable, shapeRow, startRows } from '@sluice/schema'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Inserter } from '../src/inserter.ts'
import { Sender } from '../src/sender.ts'
import { StoredRows } from '../src/stored-rows.ts'
import { countRows, loseRows, openTestDatabase } from './test-database.ts'

let clickhouse: ClickHouseClient
let inserter: Inserter
let sender: Sender

beforeAll(async () => {
  clickhouse = await openTestDatabase()
  inserter = new Inserter(clickhouse)
  sender = new Sender({
    inserter,
    storedRows: new StoredRows(clickhouse),
    areTokensAtomic: false,
    sleep: () => Promise.resolve(),
    logger: createLogger('test', 'silent'),
    now: () => 0,
  })
})

afterAll(async () => {
  await clickhouse.close()
})

/** A frame of rows with two days of expiry, so that they make two parts. */
function makeFrame(projectId: string): Buffer {
  const rows = [30, 30, 31].map((retentionDays) => {
    const start = startRows({ projectId, retentionDays, receivedAtMs: Date.now() })
    const shaped = shapeRow({ level: 'info', message: 'm' }, randomUUID(), start, false)
    if ('error' in shaped) throw new Error(shaped.error.message)
    return shaped.row
  })
  return encodeFrame(rows.join(''))
}

const count = (projectId: string): Promise<number> => countRows(clickhouse, logsTable, projectId)

it('brings rows in whose token ClickHouse has without them', async () => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const frames = [makeFrame(projectId)]
  await inserter.insert(frames, token)
  await loseRows(clickhouse, logsTable, projectId)
  await inserter.insert(frames, token)
  expect(await count(projectId)).toBe(0)
  await sender.tries(frames, token, 0)()
  expect(await count(projectId)).toBe(3)
})

it('brings the part in that is missing, and not the other one again', async () => {
  const [projectId, token] = [randomUUID(), randomUUID()]
  const frames = [makeFrame(projectId)]
  await inserter.insert(frames, token)
  const lastDay = new Date(Date.now() + 32 * 86_400_000).toISOString().slice(0, 10)
  await loseRows(clickhouse, logsTable, projectId, `expires_on = '${lastDay}'`)
  expect(await count(projectId)).toBe(2)
  const send = sender.tries(frames, token, 0)
  await send()
  await send()
  expect(await count(projectId)).toBe(3)
})

it('sends what is there already under no token', async () => {
  const projectId = randomUUID()
  const frames = [makeFrame(projectId)]
  await inserter.insert(frames, randomUUID())
  await sender.tries(frames, randomUUID(), 0)()
  expect(await count(projectId)).toBe(3)
})
