/**
 * What a request does to its connection, from the kindest to the worst:
 *
 * - `keeps`: it is whole and its framing is sound, so it gets one answer, and another request may follow.
 * - `closes`: it gets one answer, and is the last on its connection.
 * - `torn`: where it ends is open to question. The client says that nothing more comes, and reads until the end.
 * - `abandoned`: the client is gone as soon as it is written.
 */
export type Ending = 'keeps' | 'closes' | 'torn' | 'abandoned'

const severity: readonly Ending[] = ['keeps', 'closes', 'torn', 'abandoned']

export function worse(a: Ending, b: Ending): Ending {
  return severity.indexOf(a) > severity.indexOf(b) ? a : b
}

/** A request as it goes over the wire, and what is known about its answer. */
export interface FuzzRequest {
  readonly number: number
  /** What was done to it, for people. */
  readonly mutations: readonly string[]
  /** Written one after another, in turns of their own. */
  readonly pieces: readonly Buffer[]
  /** Between two pieces, ms. */
  readonly pauseMs: number
  readonly ending: Ending
  /** Answers to HEAD have no body. */
  readonly isHead: boolean
  /** What X-Request-Id must be answered, if that is known. */
  readonly requestId: string | undefined
  /** How many entries a batch has, if that is known: what is accepted and rejected adds up to it. */
  readonly entries: number | undefined
  /** The only statuses that are right, if that is known. */
  readonly statuses: readonly number[] | undefined
}

/** Keys that requests are sent with. All are as long as each other. */
export interface FuzzKeys {
  /** For requests whose answers are all read: their 202s and the rows of their project agree to the row. */
  readonly exact: string
  /** For requests whose answers may get lost. */
  readonly torn: string
  /** Of a project that is gone. */
  readonly orphan: string
  readonly revoked: string
  /** Without the scope. */
  readonly reader: string
}
