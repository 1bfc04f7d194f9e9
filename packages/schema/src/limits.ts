/**
 * Every limit of the contract, in one place. The units are in the names; characters are Unicode code points.
 * The API's validation, the OpenAPI document and the tests read them from here.
 */
export const limits = {
  /** Enough for a long stack trace; one entry stays far below a chunk. */
  messageCharactersMax: 65_536,
  stackCharactersMax: 65_536,
  /** The longest address that browsers and proxies pass on in practice. */
  urlCharactersMax: 8_192,
  pathnameCharactersMax: 8_192,
  /** `service` is a LowCardinality column: a name, not a payload. */
  serviceCharactersMax: 256,
  /** Metadata counts as the JSON text that is stored, in UTF-8. */
  metadataBytesMax: 65_536,
  /** `metadata` itself is level 1. */
  metadataDepthMax: 16,
  /** As many names as the JSON column keeps as columns of their own. */
  metadataNamesMax: 256,
  entriesPerBatchMax: 100,
  /** Decoded. 100 entries of the usual size are 50 KB, so this is headroom for stack traces. */
  bodyBytesMax: 5 * 1024 * 1024,
  /** What one rejected entry reports at most, so that an answer stays small next to its request. */
  errorsPerEntryMax: 8,
} as const
