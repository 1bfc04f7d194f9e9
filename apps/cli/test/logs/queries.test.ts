import { describe, expect, test } from 'vitest'
import {
  arrivalsQuery,
  entriesByIdQuery,
  laterEntriesQuery,
  type LogFilter,
  newestEntriesQuery,
  newestReceivedQuery,
} from '../../src/logs/queries.ts'

const evil = "x' OR 1=1 --"
const filter: LogFilter = {
  projectId: evil,
  levels: [evil],
  service: evil,
  environments: [evil],
  search: evil,
  metadata: [
    { paths: [[evil, evil], [`${evil}.${evil}`]], value: evil, isString: true },
    { paths: [[evil]], value: '42', isString: false },
    { paths: [[evil]], value: 'null', isString: false },
  ],
}

describe('no argument becomes part of the SQL', () => {
  test.each([
    ['newestEntriesQuery', newestEntriesQuery(filter, { from: evil, until: evil }, 7)],
    ['laterEntriesQuery', laterEntriesQuery(filter, evil, 7)],
    ['newestReceivedQuery', newestReceivedQuery(filter, evil)],
    ['arrivalsQuery', arrivalsQuery(filter, evil, 7, 'newest')],
    ['entriesByIdQuery', entriesByIdQuery(evil, [evil], evil, evil)],
  ])('%s', (_name, { query, query_params }) => {
    expect(query).not.toContain(evil)
    const named = new Set([...query.matchAll(/\{(\w+):/g)].map(([, name]) => name))
    expect(named).toEqual(new Set(Object.keys(query_params)))
  })
})

test('an absent filter adds no condition', () => {
  const open: LogFilter = {
    projectId: 'demo',
    levels: [],
    service: undefined,
    environments: [],
    search: undefined,
    metadata: [],
  }
  const { query, query_params } = newestEntriesQuery(
    open,
    { from: undefined, until: '2026-11-20 13:00:00.000000' },
    100,
  )
  expect(query_params).toEqual({ project: 'demo', limit: 100, until: '2026-11-20 13:00:00.000000' })
  expect(query).toContain(
    "WHERE project_id = {project:String} AND timestamp < {until:DateTime64(6, 'UTC')}\n",
  )
})
