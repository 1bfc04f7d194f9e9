import type { LogReader } from '@sluice/clickhouse'
import type { RetryChoice, RetryRequests } from '@sluice/ops'
import type { MonotonicClock } from '@sluice/runtime'
import type { FastifyInstance } from 'fastify'
import { available, type ReadAccess } from './access.ts'
import { isId } from './cursor.ts'
import { readParameters } from './parameters.ts'
import type { Pipeline } from './pipeline.ts'
import { Problem } from './problems.ts'

export interface OperatorDependencies {
  readonly access: ReadAccess
  readonly reader: LogReader
  readonly pipeline: Pick<Pipeline, 'read'>
  readonly retries: Pick<RetryRequests, 'ask' | 'read'>
  readonly clock: MonotonicClock
}

const deadLetterLimits = {
  /** An answer serves all requests in this time. */
  answerMs: 2_000,
  /** ClickHouse ends the query after `queryMs`, unless it does not answer at all. */
  queryMs: 3_000,
  silenceMs: 4_000,
  groupsMax: 200,
  /** Of a code or a reason. */
  textCharactersMax: 2_000,
} as const

interface Group {
  readonly count: number
}

/** The groups of dead letters, largest first, with the projects and the newest letters of each, up to 20. */
const groupsOf = (from: string): string => `
  SELECT code, reason, count() AS count, max(failed_at) AS last_failed_at, arraySort(groupUniqArray(20)(project_id)) AS projects,
    arrayMap(letter -> CAST((letter.2, letter.3, letter.4), 'Tuple(id UUID, project_id String, failed_at DateTime64(3, \\'UTC\\'))'),
      groupArraySorted(20)((-toUnixTimestamp64Milli(failed_at), id, project_id, failed_at))) AS letters
  ${from} GROUP BY code, reason ORDER BY count DESC, code, reason LIMIT ${deadLetterLimits.groupsMax}`

/** What concerns the whole installation: needs the scope `admin`, and has nothing of an entry. */
export function operatorRoutes(app: FastifyInstance, dependencies: OperatorDependencies): void {
  const { access, reader, pipeline, retries, clock } = dependencies
  let last: { readonly atMs: number; readonly answer: Promise<object> } | undefined

  async function readDeadLetters(): Promise<object> {
    const { queryMs: timeMs, silenceMs } = deadLetterLimits
    const options = { signal: AbortSignal.timeout(silenceMs), limits: { timeMs } }
    const query = reader.deadLetters<Group>(groupsOf, options)
    const [groups, retry] = await Promise.all([query, available(retries.read())])
    return { total: groups.reduce((sum, { count }) => sum + count, 0), groups, retry }
  }

  app.addHook('onRequest', async (request) => {
    await access.requireAdmin(request)
    readParameters({}, request.query as Readonly<Record<string, unknown>>)
  })
  app.get('/v1/query/pipeline', (_request, reply) => reply.type('application/json').send(pipeline.read()))
  app.get('/v1/query/dead-letters', () => {
    const atMs = clock.nowMs()
    if (last === undefined || atMs - last.atMs >= deadLetterLimits.answerMs)
      last = { atMs, answer: readDeadLetters() }
    return last.answer
  })
  app.post('/v1/query/dead-letters/retry', async ({ body }, reply) => {
    if (!(await available(retries.ask(choiceOf(body))))) throw new Problem('retry_running')
    last = undefined
    return reply.code(202).send({ retry: await available(retries.read()) })
  })
}

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= deadLetterLimits.textCharactersMax

/** @throws Problem `invalid_body` */
function choiceOf(body: unknown): RetryChoice {
  const { id, code, reason, ...rest } = Object(body) as Partial<Record<string, unknown>>
  const isOne = code === undefined && reason === undefined && Object.keys(rest).length === 0
  if (isOne && isText(id) && isId(id)) return { id }
  if (id === undefined && isText(code) && isText(reason)) return { code, reason }
  throw new Problem('invalid_body', 'Send {"id":"…"}, or {"code":"…","reason":"…"} of a group, as JSON.')
}
