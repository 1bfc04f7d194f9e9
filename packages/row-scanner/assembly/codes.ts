// The codes of errors in entries. `entryErrorCodes` of @sluice/schema has the same order.
export const INVALID_JSON: i32 = 0
export const INVALID_TIMESTAMP: i32 = 1
export const INVALID_UNICODE: i32 = 2
export const MISSING: i32 = 3
export const NOT_ALLOWED: i32 = 4
export const TOO_DEEP: i32 = 5
export const TOO_LARGE: i32 = 6
export const TOO_LONG: i32 = 7
export const TOO_MANY_NAMES: i32 = 8
export const WRONG_TYPE: i32 = 9
