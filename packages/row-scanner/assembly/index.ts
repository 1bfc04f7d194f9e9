import { takeEntry, timestampEnd, timestampStart } from './entry'
import { Errors } from './errors'
import { Field, fieldOfName } from './fields'
import { entriesPerRequestMax } from './limits'
import { Line } from './lines'
import { Literal, literal } from './literals'
import { BODY, TAPE } from './memory'
import { Records } from './records'
import { Rows } from './rows'
import { malformation, malformedLine } from './shippers/bulk'
import { ARRAY, Node, NODE_BYTES, OBJECT, REPEATED } from './tape'
import { readText, Text } from './text'
import { Wire } from './wire'

export * from './memory'
export { useWords } from './loggers/words'
export { scanLoki, scanLokiJson } from './loki/request'
export { setSeed } from './names'
export { scanOtlp, scanOtlpJson } from './otlp/request'
export { scanBulk } from './shippers/bulk'
export { scanDatadog } from './shippers/datadog'
export { scanHecEvents, scanHecLines } from './shippers/hec'

const numbers = <i32>memory.data(11 * 4)

/** Writes what is left of a scan, in the order of `outcome` in `src/scanner.ts`. @returns its place */
export function outcome(): i32 {
  Rows.pack()
  store<i32>(numbers, Records.count)
  store<i32>(numbers, Rows.count, 4)
  store<i32>(numbers, Rows.end, 8)
  store<i32>(numbers, Records.pieces, 12)
  store<i32>(numbers, Errors.count, 16)
  store<i32>(numbers, timestampStart, 20)
  store<i32>(numbers, timestampEnd, 24)
  store<i32>(numbers, changetype<i32>(malformation), 28)
  store<i32>(numbers, malformedLine, 32)
  store<i32>(numbers, Wire.fault, 36)
  store<i32>(numbers, Wire.faultAt, 40)
  return numbers
}

/** Adds why the text that was read last is not JSON to the errors. */
export function addFault(): void {
  Errors.addFault(0)
}

/**
 * Scans the body at `BODY`, which is followed by a zero.
 *
 * @param bytes the length of the body
 * @returns what the body is, as in `Kind` of `src/scanner.ts`
 */
export function scan(bytes: i32): string {
  Records.clear()
  if (!readText(BODY, BODY + bytes)) return 'invalid'
  const kind = Node.of(TAPE).kind
  if (kind === ARRAY) return takeEntries(TAPE)
  return kind === OBJECT ? takeRoot() : 'other'
}

/** Scans the body at `BODY`, which has an entry per line. Blank lines do not count. */
export function scanLines(bytes: i32): string {
  Records.clear()
  for (Line.begin(bytes); Line.find();) {
    if (Text.skip(Line.start) === Line.end) continue
    const index = Records.count
    Records.count += 1
    if (index >= entriesPerRequestMax) continue
    if (readText(Line.start, Line.end)) takeEntry(TAPE, index)
    else Errors.addFault(index)
  }
  return 'batch'
}

/** Takes an object that is an entry, has "logs" with entries, or has records of OTLP. */
function takeRoot(): string {
  let logs = 0
  let hasResourceLogs = false
  let isLikeEntry = false
  for (let at = TAPE + NODE_BYTES; Node.of(TAPE).next > at; at = Node.afterMember(at)) {
    const name = Node.of(at)
    if (name.has(REPEATED)) continue
    const field = fieldOfName(name)
    if (Literal.of(LOGS).isName(name)) logs = name.next
    else if (Literal.of(RESOURCE_LOGS).isName(name)) hasResourceLogs = true
    else if (field !== 0 && Field.of(field).isRequired) isLikeEntry = true
  }
  if (logs !== 0) return Node.of(logs).kind === ARRAY ? takeEntries(logs) : 'wrong-logs'
  if (hasResourceLogs && !isLikeEntry) return 'otlp'
  Records.count = 1
  takeEntry(TAPE, 0)
  return 'entry'
}

const LOGS = literal('logs')
const RESOURCE_LOGS = literal('resourceLogs')

function takeEntries(array: i32): string {
  for (let at = array + NODE_BYTES; Node.of(array).next > at; at = Node.of(at).next) {
    // More entries are only counted.
    if (Records.count < entriesPerRequestMax) takeEntry(at, Records.count)
    Records.count += 1
  }
  return 'batch'
}
