// What JavaScript says when it makes an instance: `limits` in `src/limits.ts`.
export declare const entriesPerBatchMax: i32
export declare const metadataBytesMax: i32
export declare const metadataDepthMax: i32
