import { describe, expect, test } from 'vitest'
import { arrivals, entriesById, type LogFilter, newestEntries, newestReceipt } from '../../src/logs/query.ts'

const evil = "x' OR 1=1 --"
const filter: LogFilter = { projectId: evil, levels: [evil], service: evil, search: evil }

describe('nothing that is given becomes part of the SQL', () => {
  test.each([
    ['newestEntries', newestEntries(filter, evil, 7)],
    ['newestReceipt', newestReceipt(filter, evil)],
    ['arrivals', arrivals(filter, evil, 7, 'newest')],
    ['entriesById', entriesById(evil, [evil], evil, evil)],
  ])('%s', (_name, { query, query_params }) => {
    expect(query).not.toContain(evil)
    const named = new Set([...query.matchAll(/\{(\w+):/g)].map(([, name]) => name))
    expect(named).toEqual(new Set(Object.keys(query_params)))
  })
})

test('what is not asked for is no condition', () => {
  const open: LogFilter = { projectId: 'demo', levels: [], service: undefined, search: undefined }
  const { query, query_params } = newestEntries(open, undefined, 100)
  expect(query_params).toEqual({ project: 'demo', limit: 100 })
  expect(query).toContain('WHERE project_id = {project:String}\n')
})
