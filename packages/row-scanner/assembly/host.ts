// The functions that JavaScript provides.

/** Writes the first id of another millisecond to `ID`. */
export declare function renewId(): void

/** Whether Elasticsearch allows UTF-8 as the name of an index. */
export declare function isIndexName(from: i32, end: i32): bool
