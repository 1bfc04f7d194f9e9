import { COLON, COMMA } from '../bytes'
import { Decoded } from '../draft'
import { ENTRY } from '../errors'
import { literal } from '../literals'
import { readLevelName } from '../loggers/levels'
import { isNamed, memberOf, named } from '../loggers/members'
import { faultOf, Mapper, record, reject } from '../loggers/mapper'
import { isBlank, levelNode } from '../loggers/words'
import { BODY, TAPE } from '../memory'
import { INVALID_JSON, Records } from '../records'
import { ARRAY, Node, NODE_BYTES, REPEATED, STRING, Tape, TEXT } from '../tape'
import { readText } from '../text'

const LEVEL = literal('level')
const ENV = literal('env')
const SERVICE = literal('service')
/** Longer lists of tags are not searched. */
const TAGS_BYTES_MAX: i32 = 8_192

/** Scans a body of Datadog's logs API: an array of logs, or one log. @returns 0, or why the request is rejected */
export function scanDatadog(bytes: i32): i32 {
  Records.clear()
  if (!readText(BODY, BODY + bytes)) return INVALID_JSON
  const isArray = Node.of(TAPE).kind === ARRAY
  const end = Node.of(TAPE).next
  let result = 0
  for (let log = isArray ? TAPE + NODE_BYTES : TAPE; log < end && result === 0; log = Node.of(log).next)
    result = takeLog(log)
  Records.finish()
  return result
}

/** The status of a log is its level, and its tags may have the environment and the service. */
function takeLog(log: i32): i32 {
  const fault = faultOf(log)
  if (fault !== 0) return reject(fault, ENTRY)
  const end = Node.of(log).next
  // The Agent sends an empty object to test the connection.
  if (end === log + NODE_BYTES) return 0
  Mapper.begin(log)
  const known = record.last
  const status = memberOf(log, 'level') === 0 ? levelOfStatus(memberOf(log, 'status')) : 0
  for (let address = log + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const name = Node.of(address)
    if (!name.has(REPEATED) && (status === 0 || !isNamed(name, 'status'))) record.add(address, known)
  }
  if (status !== 0) record.add(named(LEVEL, status), known)
  const tags = memberOf(log, 'ddtags')
  if (tags !== 0 && Node.of(tags).kind === STRING) {
    const hasEnvironment = memberOf(log, 'environment') !== 0 || memberOf(log, 'env') !== 0
    const environment = hasEnvironment ? 0 : tagOf(Node.of(tags), 'env')
    const service = memberOf(log, 'service') === 0 ? tagOf(Node.of(tags), 'service') : 0
    if (environment !== 0) record.add(named(ENV, environment), known)
    if (service !== 0) record.add(named(SERVICE, service), known)
  }
  Mapper.map()
  return Mapper.take()
}

const OK: u16 = 0x6b6f
/** The place of the level in the contract. */
const SUCCESS: i32 = 3

/** The node of the level of a status; 0 if it is none. */
function levelOfStatus(address: i32): i32 {
  const status = Node.of(address)
  if (address === 0 || status.kind !== STRING) return 0
  Decoded.read(status)
  const start = Decoded.start
  if (Decoded.end - start === 2 && (load<u16>(start) | 0x2020) === OK) return levelNode(SUCCESS)
  return readLevelName(start, Decoded.end) === 0 ? 0 : address
}

/** The value of the last tag with a name: `env:prod,version:1.2`. The tags stay in the metadata. @returns 0 if there is none, or if it is empty */
function tagOf(tags: Node, name: string): i32 {
  Decoded.read(tags)
  const end = Decoded.end
  if (end - Decoded.start > TAGS_BYTES_MAX) return 0
  let value = 0
  for (let at = Decoded.start, next = at; at < end; at = next + 1) {
    next = at
    while (next < end && load<u8>(next) !== COMMA) next += 1
    while (at < next && isBlank(load<u8>(at))) at += 1
    if (!startsWith(at, name)) continue
    at += name.length
    while (at < next && isBlank(load<u8>(at))) at += 1
    if (at >= next || load<u8>(at) !== COLON) continue
    value = trimmed(at + 1, next)
    if (Node.of(value).bytes === 0) value = 0
  }
  return value
}

function startsWith(at: i32, text: string): bool {
  for (let i = 0; i < text.length; i += 1) if (load<u8>(at + i) !== <u8>text.charCodeAt(i)) return false
  return true
}

/** The node of a text without the blanks around it. */
function trimmed(from: i32, end: i32): i32 {
  while (from < end && isBlank(load<u8>(from))) from += 1
  while (from < end && isBlank(load<u8>(end - 1))) end -= 1
  Tape.add(TEXT, from, end)
  return Tape.end - NODE_BYTES
}
