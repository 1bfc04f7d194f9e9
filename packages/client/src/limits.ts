/** The limits of the HTTP API. A test compares them with those of the server. Characters are Unicode code points. */
export const contractLimits = {
  messageCharactersMax: 65_536,
  stackCharactersMax: 65_536,
  urlCharactersMax: 8_192,
  pathnameCharactersMax: 8_192,
  serviceCharactersMax: 256,
  /** Of the JSON text, in UTF-8. */
  metadataBytesMax: 65_536,
  /** `metadata` itself is level 1. */
  metadataDepthMax: 16,
  metadataNamesMax: 256,
  entriesPerRequestMax: 100,
  /** Before compression. */
  bodyBytesMax: 5 * 1024 * 1024,
} as const
