/** Why a body is no message of Protocol Buffers, in the order of `assembly/otlp/faults.ts`. */
const faults = [
  '',
  'a field has an invalid number',
  'a field has an invalid type',
  'groups are nested too deeply',
  'a group has no end',
  'a group ends within another one',
  'a number is incomplete',
  'a number has more than ten bytes',
  'a value is longer than the message',
  'values are nested too deeply',
  'a text is not UTF-8',
] as const

/** Parts of the JSON form and what they must be, in the order of `assembly/otlp/parts.ts`. */
export const otlpParts = [
  'resourceLogs must be an array',
  'an element of resourceLogs must be an object',
  'scopeLogs must be an array',
  'an element of scopeLogs must be an object',
  'logRecords must be an array',
  'resource must be an object',
  'scope must be an object',
  'schemaUrl must be a string',
  'name must be a string',
  'version must be a string',
  'a log record must be an object',
  'timeUnixNano must be an unsigned 64-bit integer',
  'observedTimeUnixNano must be an unsigned 64-bit integer',
  'severityNumber must be a 32-bit integer',
  'severityText must be a string',
  'attributes must be an array',
  'an element of attributes must be an object',
  'droppedAttributesCount must be an unsigned 32-bit integer',
  'flags must be an unsigned 32-bit integer',
  'traceId must be a string',
  'spanId must be a string',
  'eventName must be a string',
  'key must be a string',
  'a value must be an object',
  'stringValue must be a string',
  'boolValue must be true or false',
  'intValue must be a 64-bit integer',
  'doubleValue must be a double',
  'arrayValue must be an object',
  'kvlistValue must be an object',
  'values must be an array',
  'an element of values must be an object',
  'bytesValue must be a base64 string',
] as const

const PART_TYPE = 11

/**
 * Says why a body is not the message of its protocol.
 *
 * @param at the place of the fault in the memory, or the number of the part
 * @param body the place of the body
 */
export function messageFault(fault: number, at: number, body: number): string {
  return fault === PART_TYPE ? (otlpParts[at] ?? '') : `${faults[fault] ?? ''}, at byte ${at - body}`
}
