// The functions that JavaScript provides. They read and write texts in the memory. The texts are ASCII.

/** Writes a new id. */
export declare function writeId(to: i32): void
/** Writes a timestamp in the form that ClickHouse reads. @returns its length in bytes; 0 if the text is not a timestamp */
export declare function writeTimestamp(from: i32, fromEnd: i32, to: i32): i32
/** Writes a number as JSON.stringify writes it. @returns its length in bytes; 0 if a double cannot represent it exactly */
export declare function writeNumber(from: i32, fromEnd: i32, to: i32): i32
/** Writes a double as JSON.stringify writes it. @returns its length in bytes; 0 if it is not finite or has an exponent */
export declare function writeDouble(from: i32, to: i32): i32
