/**
 * Where everything is in the memory, in bytes. Text is read and copied sixteen bytes at a time, so that up to fifteen behind
 * each end are read and written too, and some more are read behind the body: so much room is left there.
 */
export const SLACK: i32 = 64
/** Larger bodies are left to the parser. */
export const BODY_BYTES_MAX: i32 = 1_048_576
/** More than a row has that is not from the body: the columns that the server adds, a timestamp, tabs. */
export const ROW_OWN_BYTES_MAX: i32 = 1_024
/** More columns than there are, and more levels than metadata may have: JavaScript compares. */
export const COLUMNS_MAX: i32 = 32
export const LEVELS_MAX: i32 = 32
/** Objects in metadata with more names are left to the parser: each name is compared with those before it. */
export const NAMES_MAX: i32 = 32

/** The fields of an entry, as JavaScript describes them: see `fields.ts`. What is before is the compiler's. */
export const FIELDS: i32 = 0x4000
export const FIELDS_BYTES_MAX: i32 = 0x2000
/** By column, and -1 before the first: where the field is that followed it last time. i32 each. */
export const FOLLOWING: i32 = FIELDS + FIELDS_BYTES_MAX
/** By column: the text of the entry at hand: see `texts.ts`. */
export const TEXTS: i32 = FOLLOWING + (COLUMNS_MAX + 1) * 4
/** Hashes of the names of the metadata's objects that are open, those of the innermost last. i64 each. */
export const NAMES: i32 = TEXTS + COLUMNS_MAX * 16
/** What all rows of a request start with, and the time of receipt, as they are written; each of at most half of `ROW_OWN_BYTES_MAX`. */
export const ROW_START: i32 = NAMES + LEVELS_MAX * NAMES_MAX * 8
export const RECEIVED_AT: i32 = ROW_START + ROW_OWN_BYTES_MAX / 2 + SLACK
/** The body. */
export const BODY: i32 = RECEIVED_AT + ROW_OWN_BYTES_MAX / 2 + SLACK
/**
 * The metadata of the entry at hand, and behind it the rows. Nothing takes more than twice its own text: a backslash in
 * metadata, two bytes of JSON, becomes four; nothing else grows more, and no number grows.
 */
export const METADATA: i32 = BODY + BODY_BYTES_MAX + SLACK
export const ROWS: i32 = METADATA + 2 * BODY_BYTES_MAX + SLACK
