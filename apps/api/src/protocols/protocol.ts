import type { ScannedRecords, Scanner } from '@sluice/row-scanner'
import type { RowPrefix } from '@sluice/rows'
import type { IncomingHttpHeaders } from 'node:http'
import type { Answer } from '../answer.ts'
import type { Rejections } from '../intake/intake.ts'
import type { Problem } from '../problems.ts'

export interface ProtocolRequest {
  readonly headers: IncomingHttpHeaders
  readonly params: Readonly<Record<string, string>>
  /** A repeated name has an array. */
  readonly query: Readonly<Record<string, unknown>>
}

export interface Answering {
  /** Holds bytes of a long response until the client has read it. @throws Problem `overloaded` */
  readonly hold: (bytes: number) => void
  /** Resolves in a later turn of the event loop. A long response is made in steps. */
  readonly nextTurn: () => Promise<void>
}

export type Outcome = Pick<ScannedRecords, 'records' | 'rejected'>

export interface Reading {
  /** Reads the records of the body. @throws Problem or RejectedBody if the request as a whole is rejected. Nothing is stored then */
  readonly read: (scanner: Scanner, prefix: RowPrefix) => ScannedRecords
  /** What the protocol says about a body that is rejected as a whole, if it says more than the intake. */
  readonly rejections?: Partial<Rejections>
  /**
   * The response to the request. It is made before its rows are stored, and sent afterwards. It follows from the request alone, so that a replay
   * gets the same. @throws Problem if there is no room for it. Nothing is stored then
   */
  readonly answer: (outcome: Outcome, answering: Answering) => Answer | Promise<Answer>
}

/** A response that never changes, to what a shipper requests before it sends records. */
export interface FixedAnswer {
  /** The paths of its GET and HEAD requests. */
  readonly paths: readonly string[]
  /** Whether the request needs a valid key, so that shippers notice a wrong key when they start. */
  readonly needsKey: boolean
  readonly answer: Answer
}

/** An encoding that belongs to the protocol and not to HTTP. */
export interface OwnEncoding {
  /** The value of Content-Encoding that may stand for it. */
  readonly name: string
  readonly isUsed: (headers: IncomingHttpHeaders) => boolean
  /**
   * @param hold is called with the number of decoded bytes before there is memory for them
   * @throws Problem `invalid_encoding`, `body_too_large` above `limits.bodyBytesMax`, and what `hold` throws
   */
  readonly decode: (body: Buffer, hold: (bytes: number) => void) => Buffer
}

/** How a kind of shipper sends records: an adapter between its API and the intake. */
export interface Protocol {
  /** The paths of its requests. They may have parameters. */
  readonly paths: readonly string[]
  /** The methods of its requests: POST, and PUT if its clients use it. */
  readonly methods: readonly ('POST' | 'PUT')[]
  /** The value of an Authorization header with a bearer token that has the API key, from wherever such shippers send the key. */
  readonly authorization: (headers: IncomingHttpHeaders) => string | undefined
  readonly encoding?: OwnEncoding
  /** Rejects a request before its body is read. @throws Problem */
  readonly check?: (request: Pick<ProtocolRequest, 'query'>) => void
  /** @param body decoded @throws Problem */
  readonly read: (body: Buffer, request: ProtocolRequest) => Reading
  /** The response to a rejected request. */
  readonly reject: (problem: Problem, requestId: string) => Answer
  readonly fixedAnswers?: readonly FixedAnswer[]
  /** The response to OPTIONS on the paths, without a key. Without it, the method is rejected. */
  readonly optionsAnswer?: Answer
}
