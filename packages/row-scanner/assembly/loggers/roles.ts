// The roles of names. `roleNumbers` in `src/words.ts` has the same order.
export const TIME: i32 = 0
export const LEVEL: i32 = 1
export const LEVEL_SYSLOG: i32 = 2
export const LEVEL_OTEL: i32 = 3
export const LEVEL_PYTHON: i32 = 4
export const MESSAGE: i32 = 5
export const SERVICE: i32 = 6
export const SERVICE_OF_BUNYAN: i32 = 7
export const ENVIRONMENT: i32 = 8
export const SOURCE: i32 = 9
export const URL: i32 = 10
export const PATHNAME: i32 = 11
export const STACK: i32 = 12
export const METADATA: i32 = 13

// The numberings of levels. `numberingNames` in `src/words.ts` has the same order.
export const PINO: i32 = 0
export const SYSLOG: i32 = 1
export const OTEL: i32 = 2
export const PYTHON: i32 = 3
