import type { EntryError } from './entry.ts'
import type { Hooks } from './hooks.ts'
import { SluiceError } from './sluice-error.ts'

/** Calls the hooks of the application. What they throw never reaches the caller. */
export class HookCaller {
  readonly #hooks: Hooks
  #hasThrown = false
  #hasReportedRejection = false
  /** The hooks that are being called. Entries that a hook logs, and that are dropped, do not call it again. */
  readonly #active = new Set<string>()

  constructor(hooks: Hooks) {
    this.#hooks = hooks
  }

  onSettled: NonNullable<Hooks['onSettled']> = (settlement) =>
    this.#call('onSettled', this.#hooks.onSettled, settlement)
  onRejected: NonNullable<Hooks['onRejected']> = (rejection) => {
    const { onRejected } = this.#hooks
    if (onRejected === undefined) this.#reportRejection(rejection.error)
    else this.#call('onRejected', onRejected, rejection)
  }
  onDropped: NonNullable<Hooks['onDropped']> = (entries, reason) =>
    this.#call('onDropped', this.#hooks.onDropped, entries, reason)
  onRetry: NonNullable<Hooks['onRetry']> = (retry) => this.#call('onRetry', this.#hooks.onRetry, retry)

  onError(error: SluiceError): void {
    try {
      const { onError = printError } = this.#hooks
      ignoreRejection(onError(error))
    } catch {
      // There is no one left to tell.
    }
  }

  #call<Arguments extends readonly unknown[]>(
    name: string,
    hook: ((...values: Arguments) => void) | undefined,
    ...values: Arguments
  ): void {
    if (hook === undefined || this.#active.has(name)) return
    this.#active.add(name)
    try {
      ignoreRejection(hook(...values), (error) => this.#report(name, error))
    } catch (error) {
      this.#report(name, error)
    } finally {
      this.#active.delete(name)
    }
  }

  /** Without a hook, the application would not notice. The message has no content of the entry: not even names in its metadata. */
  #reportRejection({ code, path }: EntryError): void {
    if (this.#hasReportedRejection) return
    this.#hasReportedRejection = true
    const [field = ''] = /^\/[a-z]+/.exec(path) ?? []
    const reason = field === '' ? code : `${code} in ${field}`
    const message = `an entry was rejected (${reason}), and there is no onRejected. Further ones are not reported.`
    this.onError(new SluiceError('rejection', message, { reason }))
  }

  #report(name: string, cause: unknown): void {
    if (this.#hasThrown) return
    this.#hasThrown = true
    this.onError(
      new SluiceError('hook', `${name} threw. Further exceptions of hooks are not reported.`, { cause }),
    )
  }
}

/** An asynchronous hook returns a promise. Without a handler, its rejection would end the process. */
function ignoreRejection(returned: unknown, report: (error: unknown) => void = () => undefined): void {
  if (returned instanceof Promise) returned.catch(report)
}

function printError(error: SluiceError): void {
  // oxlint-disable-next-line no-console -- the only place where an application without hooks can notice the problem
  console.error(`@sluice/client: ${error.message}`)
}
