import type { HookCaller } from '../hook-caller.ts'
import { SluiceError } from '../sluice-error.ts'
import type { Misconfiguration } from './answers.ts'
import type { Batch } from './batch.ts'

/** A request with this many such answers while others succeed is itself at fault: a firewall does not like its text, for example. */
const PROBLEMS_MAX = 3

/**
 * What follows from a problem: all sending waits, only this batch waits, or the batch is at fault.
 *
 * A batch waits alone if the answer is not from the API, and a request has succeeded since the last problem. The answers to other requests then
 * show whether all are rejected.
 */
export type ProblemScope = 'all' | 'batch' | 'terminal'

/**
 * Whether the API rejects all requests, because of the key, its scope, its project or the address.
 *
 * none → reported → none, with the next success.
 */
export class OperatorProblem {
  readonly #url: string
  readonly #hooks: HookCaller
  #error: SluiceError | undefined
  #occurrences = 0
  #successes = 0
  /** How many requests had succeeded at the last problem of any batch. */
  #successesAtProblem = 0

  constructor(url: string, hooks: HookCaller) {
    this.#url = url
    this.#hooks = hooks
  }

  /** Undefined after a success. */
  get error(): SluiceError | undefined {
    return this.#error
  }

  /** How many answers there were with such a problem. */
  get occurrences(): number {
    return this.#occurrences
  }

  succeed(): void {
    this.#successes += 1
    this.#error = undefined
  }

  /** Counts an answer with a problem. */
  occur(batch: Batch, { isFromApi }: Pick<Misconfiguration, 'isFromApi'>): ProblemScope {
    this.#occurrences += 1
    const isSending = this.#successes > this.#successesAtProblem
    const haveOthersSucceeded = batch.problems > 0 && this.#successes > batch.successesAtProblem
    if (batch.problems === 0 || haveOthersSucceeded) batch.problems += 1
    batch.successesAtProblem = this.#successes
    this.#successesAtProblem = this.#successes
    if (batch.problems >= PROBLEMS_MAX) return 'terminal'
    return haveOthersSucceeded || (isSending && !isFromApi) ? 'batch' : 'all'
  }

  /** Tells the application, once until a request succeeds. */
  report({ status, message: reason }: Misconfiguration): void {
    if (this.#error !== undefined) return
    const message = `${this.#url} rejects all requests: ${reason}`
    this.#error = new SluiceError('configuration', message, { status, reason })
    this.#hooks.onError(this.#error)
  }
}
