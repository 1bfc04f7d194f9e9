import { type Agent, request } from 'node:http'
import type { Insert } from './insert-gatherer.ts'

/** What ClickHouse answered. */
export interface InsertAnswer {
  readonly status: number
  readonly body: Buffer
}

const ANSWER_DEADLINE_MS = 30_000

/** Sends an insert to ClickHouse. */
export function postInsert({ url, authorization, body }: Insert, agent: Agent): Promise<InsertAnswer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization, 'content-length': body.length }
    const signal = AbortSignal.timeout(ANSWER_DEADLINE_MS)
    const outgoing = request(url, { method: 'POST', agent, headers, signal }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.once('error', reject)
      response.once('end', () => resolve({ status: response.statusCode ?? 500, body: Buffer.concat(parts) }))
    })
    outgoing.once('error', reject)
    outgoing.end(body)
  })
}
