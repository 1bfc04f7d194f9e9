/** The values that fields of an entry may have. */
export const levels = ['log', 'debug', 'info', 'success', 'warn', 'error'] as const
export const environments = ['development', 'staging', 'production'] as const
export const sources = ['server', 'client', 'edge'] as const

/**
 * Every limit of the contract. The names end with their units; characters are Unicode code points. The validation, the OpenAPI
 * document and the tests read the limits from here.
 */
export const limits = {
  /** Enough for a long stack trace, and far less than a chunk. */
  messageCharactersMax: 65_536,
  stackCharactersMax: 65_536,
  /** The longest URL that browsers and proxies forward in practice. */
  urlCharactersMax: 8_192,
  pathnameCharactersMax: 8_192,
  /** `service` is a LowCardinality column: a name, not a payload. */
  serviceCharactersMax: 256,
  /** Applies to the stored JSON in UTF-8. */
  metadataBytesMax: 65_536,
  /** `metadata` itself is level 1. */
  metadataDepthMax: 16,
  /** The number of names that the JSON column stores as separate columns. */
  metadataNamesMax: 256,
  entriesPerRequestMax: 100,
  /** For requests of shippers, whose batches cannot always be set: twice the default batch of the OpenTelemetry Collector. */
  recordsPerRequestMax: 16_384,
  /**
   * For requests of shippers: all rows of one request. What many records have in common is sent once, and stored in each row. Six times the
   * largest body.
   */
  rowBytesPerRequestMax: 32 * 1024 * 1024,
  /** After decoding. 100 typical entries are 50 KB; the rest is headroom for stack traces. */
  bodyBytesMax: 5 * 1024 * 1024,
  /** Errors reported per rejected entry, so that a response is small compared with its request. */
  errorsPerEntryMax: 8,
} as const

/** Whether a string has at most this many characters. It never has more code points than code units, or less than half of them. */
export function hasAtMostCharacters(string: string, charactersMax: number): boolean {
  if (string.length <= charactersMax) return true
  if (string.length > charactersMax * 2) return false
  let count = 0
  for (const _ of string) if (++count > charactersMax) return false
  return true
}
