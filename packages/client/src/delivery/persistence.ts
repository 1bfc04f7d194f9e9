export const persistences = ['retry', 'try-once', 'give-up'] as const

/**
 * What is done with entries that are not acknowledged.
 *
 * - `retry`: they are sent until they are acknowledged.
 * - `try-once`: they are sent, but not after a failure, and not during a pause.
 * - `give-up`: only requests in flight are awaited.
 */
export type Persistence = (typeof persistences)[number]
