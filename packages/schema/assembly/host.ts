// What JavaScript does for the scanner. Texts are read and written in the memory, and are ASCII.

/** Writes an id. */
export declare function writeId(to: i32): void
/** Writes a timestamp as ClickHouse reads it. @returns how many bytes it has; 0 for what is none */
export declare function writeTimestamp(from: i32, fromEnd: i32, to: i32): i32
/** Writes a number as JSON.stringify writes it. @returns how many bytes it has; 0 where a double is not exact */
export declare function writeNumber(from: i32, fromEnd: i32, to: i32): i32
