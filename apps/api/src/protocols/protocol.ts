import type { IncomingHttpHeaders } from 'node:http'
import type { Answer } from '../answer.ts'
import type { Outcome, SourceRecord } from '../intake/records.ts'
import type { Problem } from '../problems.ts'

/** The parts of a request that a protocol may read. */
export interface ProtocolRequest {
  readonly headers: IncomingHttpHeaders
  readonly params: Readonly<Record<string, string>>
  /** A repeated name has an array. */
  readonly query: Readonly<Record<string, unknown>>
}

/** One request of a protocol. */
export interface Reading {
  /**
   * The records of the body, in order. No step may take more than a few milliseconds. Undefined ends a step that found no record.
   *
   * @throws Problem if the request as a whole is rejected. Nothing is stored then
   */
  readonly records: () => Iterable<SourceRecord | undefined>
  /** The answer to the request once its rows are stored. It follows from the body alone, so that a replay gets the same. */
  readonly answer: (outcome: Outcome) => Answer
}

/** How a kind of shipper sends records: an adapter between its API and the intake. */
export interface Protocol {
  /** The paths of its POST requests. They may have parameters. */
  readonly paths: readonly string[]
  /** The value of an Authorization header with a bearer token that has the API key, from wherever such shippers send the key. */
  readonly authorization: (headers: IncomingHttpHeaders) => string | undefined
  /** @param body decoded @throws Problem */
  readonly read: (body: Buffer, request: ProtocolRequest) => Reading
  /** The answer to a request that is rejected. */
  readonly reject: (problem: Problem, requestId: string) => Answer
}
