import type { FixedAnswer } from '../protocol.ts'
import { elasticAnswer } from './answers.ts'

/**
 * Filebeat and Logstash reject versions that are older than their own. This one is newer than all of them, and has the major version
 * whose bulk requests are understood.
 */
const VERSION = '9.99.0'

const banner = {
  name: 'sluice',
  cluster_name: 'sluice',
  cluster_uuid: 'sluiceAAAAAAAAAAAAAAAA',
  version: {
    number: VERSION,
    build_flavor: 'default',
    build_type: 'docker',
    build_hash: '0000000000000000000000000000000000000000',
    build_date: '2026-01-01T00:00:00.000Z',
    build_snapshot: false,
    lucene_version: '10.0.0',
    minimum_wire_compatibility_version: '8.0.0',
    minimum_index_compatibility_version: '8.0.0',
  },
  tagline: 'You Know, for Search',
}

const license = {
  license: {
    status: 'active',
    uid: '00000000-0000-0000-0000-000000000000',
    type: 'basic',
    issue_date: '2026-01-01T00:00:00.000Z',
    issue_date_in_millis: Date.UTC(2026, 0, 1),
    max_nodes: null,
    issued_to: 'sluice',
    issuer: 'sluice',
    start_date_in_millis: -1,
  },
}

const health = { cluster_name: 'sluice', status: 'green', timed_out: false, number_of_nodes: 1 }

const json = (paths: readonly string[], body: object): FixedAnswer => ({
  paths,
  needsKey: true,
  answer: elasticAnswer(200, JSON.stringify(body)),
})

/** What shippers ask for before they send: the version, the license, and whether the cluster is healthy. */
export const fixedAnswers: readonly FixedAnswer[] = [
  json(['/elasticsearch', '/elasticsearch/'], banner),
  json(['/elasticsearch/_license'], license),
  json(['/elasticsearch/_cluster/health'], health),
  {
    paths: ['/elasticsearch/_cat/health'],
    needsKey: true,
    answer: { ...elasticAnswer(200, 'green\n'), type: 'text/plain; charset=UTF-8' },
  },
]
