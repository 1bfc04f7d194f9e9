import type { EntryError, QueuedEntry } from './entry.ts'

/** An entry that cannot be stored. A retry would not help. */
export interface Rejection {
  /** The entry as it was passed to the client, or as JSON if it was sent. */
  readonly entry: unknown
  /** The first error that was found. */
  readonly error: EntryError
  /** The value that was passed to `send` or `sendJson`. */
  readonly tag: unknown
}

/**
 * Why entries were dropped. `retries`: `retryForMs` has passed. `outcome-unknown`: an attempt may have succeeded, and its idempotency key is
 * about to expire. `unreadable`: the spool cannot read them, and the hook gets no entries.
 */
export type DropReason = 'overflow' | 'retries' | 'outcome-unknown' | 'closed' | 'unreadable'

/** A failed attempt that is followed by another one. */
export interface Retry {
  /** Human-readable. */
  readonly reason: string
  /** Undefined without a response. */
  readonly status: number | undefined
  /** What `fetch` threw. */
  readonly cause: unknown
  /** How many attempts have failed. */
  readonly attempt: number
  readonly delayMs: number
  readonly entries: number
  /** Whether this client has ever received a response. If not, the address may be wrong. */
  readonly hasReceivedResponse: boolean
}

/** An error of a rejected entry of a request. An entry may have several. */
export interface EntryRejection {
  /** The position of the entry in the request. */
  readonly index: number
  readonly error: EntryError
}

/** The end of a request with all its attempts. */
export interface Settlement {
  readonly entries: readonly QueuedEntry[]
  /** `kept`: left in the spool by `close`. */
  readonly outcome: 'answered' | 'rejected' | 'kept' | DropReason
  readonly accepted: number
  readonly rejected: number
  /** Which entries were rejected. */
  readonly rejections: readonly EntryRejection[]
  /** Why the request was rejected or given up, for people. */
  readonly reason: string | undefined
  /** What `fetch` threw in the last attempt. */
  readonly cause: unknown
}

/** Functions that the client calls. An exception in one of them is reported to `onError`, and has no other effect. */
export interface Hooks {
  /** Called for each entry that is invalid, as found by the client or by the API. Without it, `onError` is called for the first one. */
  readonly onRejected?: ((rejection: Rejection) => void) | undefined
  /** Called with entries that will not be sent. */
  readonly onDropped?: ((entries: readonly QueuedEntry[], reason: DropReason) => void) | undefined
  readonly onRetry?: ((retry: Retry) => void) | undefined
  /** Called with problems that need an operator, once until they are solved. Default: `console.error`. */
  readonly onError?: ((error: SluiceError) => void) | undefined
  /** Called when a request is over, before `onRejected` and `onDropped` for its entries. */
  readonly onSettled?: ((settlement: Settlement) => void) | undefined
}

/**
 * A problem that an operator has to solve. `configuration`: the API rejects every request. `spool`: the disk does not take entries, which are
 * kept in memory only. `rejection`: an entry was rejected, and there is no `onRejected`.
 */
export type SluiceErrorKind = 'configuration' | 'spool' | 'hook' | 'rejection'

export class SluiceError extends Error {
  override name = 'SluiceError'
  readonly kind: SluiceErrorKind
  /** The status of the response, if there was one. */
  readonly status: number | undefined
  /** The reason alone, without the address. */
  readonly reason: string

  constructor(
    kind: SluiceErrorKind,
    message: string,
    options: { status?: number | undefined; reason?: string; cause?: unknown } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.kind = kind
    this.status = options.status
    this.reason = options.reason ?? message
  }
}

/** Calls the hooks of the application. What they throw never reaches the caller. */
export class HookCaller {
  readonly #hooks: Hooks
  /** The kinds of errors that are reported once. */
  readonly #reported = new Set<SluiceErrorKind>()
  /** The hooks that are being called. Entries that a hook logs, and that are dropped, do not call it again. */
  readonly #active = new Set<keyof Hooks>()

  constructor({ onError, onRejected, ...others }: Hooks) {
    this.#hooks = {
      ...others,
      onError: onError ?? printError,
      onRejected: onRejected ?? (({ error }) => this.#reportRejection(error)),
    }
  }

  call<Name extends keyof Hooks>(name: Name, ...values: Parameters<NonNullable<Hooks[Name]>>): void {
    const hook = this.#hooks[name] as ((...values: unknown[]) => unknown) | undefined
    if (hook === undefined || this.#active.has(name)) return
    const report = (cause: unknown): void =>
      this.#errorOnce('hook', `${name} threw. Further exceptions of hooks are not reported.`, { cause })
    this.#active.add(name)
    try {
      const returned = hook(...values)
      // Of an asynchronous hook. Without a handler, its rejection would end the process.
      if (returned instanceof Promise) returned.catch(report)
    } catch (error) {
      report(error)
    } finally {
      this.#active.delete(name)
    }
  }

  /** Without a hook, the application would not notice. The message has no content of the entry: not even names in its metadata. */
  #reportRejection({ code, path }: EntryError): void {
    const [field = ''] = /^\/[a-z]+/.exec(path) ?? []
    const reason = field === '' ? code : `${code} in ${field}`
    const message = `an entry was rejected (${reason}), and there is no onRejected. Further ones are not reported.`
    this.#errorOnce('rejection', message, { reason })
  }

  #errorOnce(kind: SluiceErrorKind, message: string, options: { reason?: string; cause?: unknown }): void {
    if (this.#reported.has(kind)) return
    this.#reported.add(kind)
    this.call('onError', new SluiceError(kind, message, options))
  }
}

function printError(error: SluiceError): void {
  // oxlint-disable-next-line no-console -- the only place where an application without hooks can notice the problem
  console.error(`@sluice/client: ${error.message}`)
}
