/**
 * The texts that `assembly/otlp` writes or compares, by the names in `assembly/otlp/texts.ts`. The members of metadata are documented in
 * docs/sources/opentelemetry.md.
 */
const otlpTexts = {
  metadata: '{"metadata":{',
  attributes: '"attributes":{',
  droppedAttributesCount: '"dropped_attributes_count":',
  traceId: '"trace_id":',
  spanId: '"span_id":',
  flags: '"flags":',
  eventName: '"event_name":',
  severityNumber: '"severity_number":',
  severityText: '"severity_text":',
  timeUnixNano: '"time_unix_nano":',
  observedTimeUnixNano: '"observed_time_unix_nano":',
  message: '"message":',
  timestamp: '"timestamp":',
  stack: '"stack":',
  url: '"url":',
  pathname: '"pathname":',
  trueWord: 'true,',
  falseWord: 'false,',
  nullWord: 'null,',
  levelLog: '"level":"log",',
  levelDebug: '"level":"debug",',
  levelInfo: '"level":"info",',
  levelWarn: '"level":"warn",',
  levelError: '"level":"error",',
  keyOfStack: 'exception.stacktrace',
  keyOfUrl: 'url.full',
  keyOfPathname: 'url.path',
} as const

/** A text is preceded by its length in one byte. */
const SLOT_BYTES = 64

/** The place of each text. */
export const textPlaces: Readonly<Record<string, number>> = Object.fromEntries(
  Object.keys(otlpTexts).map((name, i) => [name, i * SLOT_BYTES]),
)

/** Writes all texts to the start of a memory. @throws if it has no room */
export function writeTexts(memory: Buffer): void {
  for (const [i, text] of Object.values(otlpTexts).entries()) {
    if (text.length >= SLOT_BYTES) throw new Error(`${text} is too long for the scanner`)
    memory.writeUInt8(text.length, i * SLOT_BYTES)
    memory.fill(text, i * SLOT_BYTES + 1, i * SLOT_BYTES + 1 + text.length, 'latin1')
  }
}
