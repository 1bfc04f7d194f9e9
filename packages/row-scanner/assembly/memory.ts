// The memory map: addresses and sizes in bytes.

/**
 * The room that is left after each area. Text is read and copied sixteen bytes at a time, so up to fifteen bytes after its end
 * are read and written as well. After the body, some more bytes are read.
 */
export const SLACK: i32 = 64
/** Larger bodies are left to the parser. */
export const BODY_BYTES_MAX: i32 = 1_048_576
/** An upper bound of the part of a row that is not from the body: the columns that the server adds, a timestamp, tabs. */
export const ROW_OWN_BYTES_MAX: i32 = 1_024
/** Upper bounds of the number of columns and of the levels of metadata. JavaScript checks both. */
export const COLUMNS_MAX: i32 = 32
export const LEVELS_MAX: i32 = 32
/** Objects in metadata with more names are left to the parser, because each name is compared with all earlier ones. */
export const NAMES_MAX: i32 = 32

/** The table of fields that JavaScript writes: see `fields.ts`. The compiler uses the memory before it. */
export const FIELDS: i32 = 0x4000
export const FIELDS_BYTES_MAX: i32 = 0x2000
/** For -1 (the start of an entry) and then for each column: the address of the field that followed it last time. i32 each. */
export const FOLLOWING: i32 = FIELDS + FIELDS_BYTES_MAX
/** For each column: its text in the current entry: see `texts.ts`. */
export const TEXTS: i32 = FOLLOWING + (COLUMNS_MAX + 1) * 4
/** The hashes of the names in all open objects of the metadata, the innermost object last. i64 each. */
export const NAMES: i32 = TEXTS + COLUMNS_MAX * 16
/** The prefix of all rows of a request, and the time of receipt. Each has at most half of `ROW_OWN_BYTES_MAX` bytes. */
export const ROW_START: i32 = NAMES + LEVELS_MAX * NAMES_MAX * 8
export const RECEIVED_AT: i32 = ROW_START + ROW_OWN_BYTES_MAX / 2 + SLACK
/** For `otlp/`: the places of eight texts of the current record, the digits of a number, the date of a day, texts that JavaScript writes. */
export const SPANS: i32 = RECEIVED_AT + ROW_OWN_BYTES_MAX / 2 + SLACK
export const DIGITS: i32 = SPANS + SLACK
export const DATE: i32 = DIGITS + SLACK
export const OTLP_TEXTS: i32 = DATE + SLACK
export const OTLP_TEXTS_BYTES_MAX: i32 = 2_048
/**
 * What the records of a scope have in common, as JSON. With more, the records are left to the decoder, which first checks whether their
 * metadata is too large.
 */
export const ORIGIN: i32 = OTLP_TEXTS + OTLP_TEXTS_BYTES_MAX + SLACK
export const ORIGIN_BYTES_MAX: i32 = 16_384
/** A part of ScopeLogs. It has to be written again when other requests have used the scanner, so it is not larger than a few slices of work. */
export const LOG_RECORDS: i32 = ORIGIN + ORIGIN_BYTES_MAX + SLACK
export const LOG_RECORDS_BYTES_MAX: i32 = 131_072
/** An upper bound of the part of a line that is not a text of the record or its origin: names, numbers, times, ids. */
export const LINE_OWN_BYTES_MAX: i32 = 1_024
/** The body, and a zero. */
export const BODY: i32 = LOG_RECORDS + LOG_RECORDS_BYTES_MAX + SLACK
/**
 * The metadata of the current entry, and after it the rows. Each text takes at most twice its bytes in the body: a backslash in
 * metadata has two bytes in JSON and four in a row, no other character grows more, and numbers do not grow.
 */
export const METADATA: i32 = BODY + BODY_BYTES_MAX + SLACK
export const ROWS: i32 = METADATA + 2 * BODY_BYTES_MAX + SLACK
