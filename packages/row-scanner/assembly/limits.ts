// The limits that JavaScript passes when it creates an instance: `limits` of @sluice/schema.
export declare const entriesPerRequestMax: i32
export declare const errorsPerEntryMax: i32
export declare const metadataBytesMax: i32
export declare const metadataDepthMax: i32
export declare const metadataNamesMax: i32
export declare const recordsPerRequestMax: i32
export declare const rowBytesPerRequestMax: i32
/** A piece of a request ends when it has this many rows or bytes. */
export declare const pieceRowsMax: i32
export declare const pieceBytesMax: i32
/** The ids that differ only in their counter. */
export declare const idsPerMs: i32
