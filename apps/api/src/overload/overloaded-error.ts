/** Why requests are rejected, in order of precedence if there are several reasons. */
export const overloadReasons = [
  'redis_memory',
  'queue_depth',
  'queue_age',
  'bytes_in_flight',
  'event_loop_delay',
] as const

export type OverloadReason = (typeof overloadReasons)[number]

/** There is no room in this process for the entries of a request. Nothing of it was enqueued. */
export class OverloadedError extends Error {
  override name = 'OverloadedError'
  readonly reason: OverloadReason

  constructor(reason: OverloadReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}
