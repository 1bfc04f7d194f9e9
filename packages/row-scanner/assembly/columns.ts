// The numbers of the columns that come from the entry, as JavaScript passes them: `columns` in `src/fields.ts`. The column after
// the id is 0.
export declare const timestamp: i32
export declare const level: i32
export declare const message: i32
export declare const environment: i32
export declare const source: i32
export declare const service: i32
export declare const url: i32
export declare const pathname: i32
export declare const stack: i32
/** The last column. */
export declare const metadata: i32
/** The number of all columns, those before the timestamp included. */
export declare const count: i32
