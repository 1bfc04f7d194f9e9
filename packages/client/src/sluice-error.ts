/**
 * A problem that an operator has to solve.
 *
 * - `configuration`: the API rejects every request, because of the key, its scope, its project or the address.
 * - `spool`: the disk does not take entries. They are kept in memory only.
 * - `hook`: a hook threw.
 * - `rejection`: an entry was rejected, and there is no `onRejected`.
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
    options: { status?: number; reason?: string; cause?: unknown } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.kind = kind
    this.status = options.status
    this.reason = options.reason ?? message
  }
}
