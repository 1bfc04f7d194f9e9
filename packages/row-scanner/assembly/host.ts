// The functions that JavaScript provides.

/** Writes the first id of another millisecond to `ID`. */
export declare function renewId(): void

/** Whether UTF-8 has only characters that are their own lower case. */
export declare function isLowerCase(from: i32, end: i32): bool
