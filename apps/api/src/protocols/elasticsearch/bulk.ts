import { Problem } from '../../problems.ts'
import { asBearer } from '../authorization.ts'
import type { Protocol } from '../protocol.ts'
import { rejectBulk } from './answers.ts'
import { bulkAnswer, type Item } from './bulk-answer.ts'
import { readBulk } from './bulk-reader.ts'
import { readFilter } from './filter-path.ts'
import { fixedAnswers } from './fixed-answers.ts'

/** The bulk API of Elasticsearch: documents become entries, and each gets an item of the answer. */
export const elasticsearchBulk: Protocol = {
  // Fluent Bit writes the slash if it has a pipeline.
  paths: [
    '/elasticsearch/_bulk',
    '/elasticsearch/_bulk/',
    '/elasticsearch/:index/_bulk',
    '/elasticsearch/:index/_bulk/',
  ],
  // The Python client sends PUT.
  methods: ['POST', 'PUT'],
  authorization: ({ authorization }) => asBearer(authorization, ['apikey'], ['apikey', 'basic']),
  read(body, { params, query }) {
    if (body.length === 0) throw new Problem('empty_body', 'request body is required')
    const items: Item[] = []
    const filter = readFilter(query['filter_path'])
    return {
      records: () => readBulk(body, params['index'] ?? null, items),
      answer: (outcome, answering) => bulkAnswer(items, outcome, filter, answering),
    }
  },
  reject: rejectBulk,
  fixedAnswers,
}
