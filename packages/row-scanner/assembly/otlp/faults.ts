// Why a body is not OTLP. `messageFaults` in `src/errors.ts` has the same order.
export const FIELD_NUMBER: i32 = 1
export const FIELD_TYPE: i32 = 2
export const GROUP_DEPTH: i32 = 3
export const GROUP_END: i32 = 4
export const OTHER_GROUP_END: i32 = 5
export const INCOMPLETE_NUMBER: i32 = 6
export const LONG_NUMBER: i32 = 7
export const LONG_VALUE: i32 = 8
export const NESTING: i32 = 9
export const NOT_UTF8: i32 = 10
/** In JSON: a part of the request has a wrong type. The place is the number of the part in `parts.ts`. */
export const PART_TYPE: i32 = 11
/** Not a fault of the body: the record, the resource or the scope is rejected, and not read any further. */
export const REJECTED: i32 = 12
