// The memory map: addresses and sizes in bytes.

/** The room after each area. Bytes are read and copied sixteen at a time, so up to fifteen bytes after an end are touched as well. */
export const SLACK: i32 = 64
export const BODY_BYTES_MAX: i32 = 5_242_880
/** Upper bounds that JavaScript checks: the bytes of a project's id, and the number of columns. */
export const PROJECT_BYTES_MAX: i32 = 256
export const COLUMNS_MAX: i32 = 16

/** The table of fields that JavaScript writes: see `fields.ts`. The compiler uses the memory before it. */
export const FIELDS: i32 = 0x6000
/** For each column: the node of its value in the current entry; 0 if the entry has none. i32 each. */
export const VALUES: i32 = FIELDS + COLUMNS_MAX * 12
/** What JavaScript writes for the rows of a request: when it was received, in milliseconds (i64), the day of expiry and the bytes of the id (i32 each). */
export const STAMP: i32 = 0x6800
/** The id of its project. */
export const PROJECT: i32 = STAMP + 16
/** The first id of a millisecond, and how many were used (i32). */
export const ID: i32 = PROJECT + PROJECT_BYTES_MAX + SLACK
/** Where each column ends: i32 each. */
export const COLUMN_ENDS: i32 = ID + SLACK
/** Names and words in ASCII: see `literals.ts`. Written when the module starts, in its first page. */
export const LITERALS: i32 = 0x7000
export const LITERALS_MAX: i32 = 192
export const LITERAL_BYTES: i32 = 64
/** The words of loggers that JavaScript writes, and where they are found: see `loggers/words.ts`. Their addresses have sixteen bits. */
export const WORDS: i32 = LITERALS + LITERALS_MAX * LITERAL_BYTES
export const WORDS_MAX: i32 = 256
export const WORD_BYTES: i32 = 64
export const WORD_SLOTS: i32 = WORDS + WORDS_MAX * WORD_BYTES
export const WORD_LENGTHS: i32 = WORD_SLOTS + 1_024 * 2
/** For each numbering of levels, a byte for each number. */
export const NUMBERINGS: i32 = WORD_LENGTHS + 1_024
/** The powers of ten that JavaScript writes: see `doubles.ts`. */
export const POWERS: i32 = NUMBERINGS + 5 * 64 + SLACK
const POWERS_BYTES: i32 = 617 * 16
/** The values of the columns of the current record: see `loggers/uses.ts`. */
export const USES: i32 = POWERS + POWERS_BYTES + SLACK
/** Short texts in another form: lower case, or an ordinary form of a time. */
export const SCRATCH: i32 = USES + COLUMNS_MAX * 16 + SLACK
const SCRATCH_BYTES: i32 = 512
/** The errors of entries: see `errors.ts`. */
export const ERRORS: i32 = SCRATCH + SCRATCH_BYTES + SLACK
export const ERRORS_MAX: i32 = 16_384
/** Where the pieces of a request end: three i32 each, see `records.ts`. */
export const PIECES: i32 = ERRORS + ERRORS_MAX * 28
export const PIECES_MAX: i32 = 4_096
/** The JSON Pointer of an error within each entry: see `surrogates.ts`. */
export const PATHS: i32 = PIECES + PIECES_MAX * 12
export const PATHS_MAX: i32 = 128
export const PATH_BYTES: i32 = 1_024
/** The body, and a zero. */
export const BODY: i32 = PATHS + PATHS_MAX * PATH_BYTES + SLACK
/** Decoded names and texts, and those that are made for a record. They are never longer than in the body, but for bytes that are not UTF-8, which may become three. */
export const NAMES: i32 = BODY + BODY_BYTES_MAX + SLACK
/** The metadata of the current entry. A string that fits but for its escapes may take six times the limit before it goes. */
export const METADATA: i32 = NAMES + 4 * BODY_BYTES_MAX + SLACK
const METADATA_ROOM: i32 = 524_288
/** Members of metadata that many records have in common. */
export const COMMON: i32 = METADATA + METADATA_ROOM + BODY_BYTES_MAX + SLACK
const COMMON_BYTES_MAX: i32 = 131_072
/** A string in a row takes at most twice its bytes in the body: a backslash in metadata has one byte in JSON and two in a row. */
export const ROWS: i32 = COMMON + COMMON_BYTES_MAX + SLACK
/** All rows of a request, and one more. What many records have in common is in each of their rows: JavaScript checks that there is room. */
export const ROWS_ROOM: i32 = 40 * 1_048_576
/** The values of each column of the rows that are not in a block yet: see `rows.ts`. A block ends long before a column has no room. */
export const COLUMNS: i32 = ROWS + ROWS_ROOM + SLACK
export const COLUMN_ROOM: i32 = 2 * BODY_BYTES_MAX
/** A hash table for the names of large objects: see `names.ts`. At most a fifth of the bytes of a body are names. */
export const TABLE: i32 = COLUMNS + COLUMNS_MAX * COLUMN_ROOM + SLACK
export const TABLE_SLOTS: i32 = 2_097_152
export const SLOT_BYTES: i32 = 12
/** The addresses of the labels and of the structured metadata of Loki. i32 each. */
export const UNKNOWN: i32 = TABLE + TABLE_SLOTS * SLOT_BYTES
/**
 * The members of the current record, and those of its metadata: see `loggers/members.ts`. i32 each. Of OTLP, the first
 * area has the body of the current record.
 */
export const RECORD: i32 = UNKNOWN + BODY_BYTES_MAX + SLACK
export const KEPT: i32 = RECORD + BODY_BYTES_MAX + SLACK
/** JSON that JavaScript passes with the body: what the URL of a request says about its records. */
export const ORIGIN: i32 = KEPT + BODY_BYTES_MAX + SLACK
export const ORIGIN_BYTES_MAX: i32 = 262_144
/** The items of a bulk request: see `shippers/bulk.ts`. */
export const ITEMS: i32 = ORIGIN + ORIGIN_BYTES_MAX + SLACK
export const ITEM_NUMBERS: i32 = 10
export const ITEMS_MAX: i32 = 16_384
/**
 * The nodes of the current entry: see `tape.ts`. Each is in one line of the processor's cache. A body may consist of open brackets. No JSON has a
 * value in less than two bytes: what is made for a record follows, such as the nodes of a resource and a scope of OTLP: see `Budget`.
 */
export const TAPE: i32 = (ITEMS + (ITEMS_MAX + 1) * ITEM_NUMBERS * 4 + SLACK + 15) & ~15
export const TAPE_BYTES_MAX: i32 = BODY_BYTES_MAX * 16 + 4_194_304
