/** Why requests are refused. In the order in which the reasons are told when there are several. */
export const overloadReasons = [
  'redis_memory',
  'queue_depth',
  'queue_age',
  'bytes_in_flight',
  'event_loop_delay',
] as const

export type OverloadReason = (typeof overloadReasons)[number]

/** Refused, and nothing of it was enqueued: there is no room. */
export class OverloadedError extends Error {
  override name = 'OverloadedError'
  readonly reason: OverloadReason

  constructor(reason: OverloadReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}
