/** Why requests are rejected, in order of precedence if there are several reasons. */
export const overloadReasons = [
  'redis_memory',
  'queue_depth',
  'queue_age',
  'bytes_in_flight',
  'event_loop_delay',
] as const

export type OverloadReason = (typeof overloadReasons)[number]
