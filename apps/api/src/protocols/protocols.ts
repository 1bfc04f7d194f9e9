import type { Protocol } from './protocol.ts'

/** The protocols that have paths of their own. */
export const protocols: readonly Protocol[] = []
