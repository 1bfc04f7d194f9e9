// The columns of a row that are from the entry, as JavaScript numbers them: `rowColumns` in `src/rows.ts`, from 0 behind the id.
export declare const timestamp: i32
export declare const level: i32
export declare const message: i32
/** The last one. */
export declare const metadata: i32
