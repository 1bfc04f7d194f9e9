// The limits that JavaScript passes when it creates an instance: `limits` of @sluice/schema.
export declare const entriesPerRequestMax: i32
export declare const metadataBytesMax: i32
export declare const metadataDepthMax: i32
