import { COLON, COMMA } from '../bytes'
import * as codes from '../codes'
import { Decoded } from '../draft'
import { ENTRY } from '../errors'
import { Literal, literal } from '../literals'
import { readLevelName } from '../loggers/levels'
import { memberOf, named } from '../loggers/members'
import { Mapper, record, takeEach } from '../loggers/mapper'
import { levelNode, Trimmed } from '../loggers/words'
import { BODY, TAPE } from '../memory'
import { INVALID_JSON, Records } from '../records'
import { Node, NODE_BYTES, OBJECT, STRING, Tape, TEXT } from '../tape'
import { readText } from '../text'

const LEVEL = literal('level')
const STATUS = literal('status')
const TAGS = literal('ddtags')
const ENVIRONMENT = literal('environment')
const ENV = literal('env')
const SERVICE = literal('service')
/** Longer lists of tags are not searched. */
const TAGS_BYTES_MAX: i32 = 8_192

/** Scans a body of Datadog's logs API: an array of logs, or one log. @returns 0, or why the request is rejected */
export function scanDatadog(bytes: i32): i32 {
  Records.clear()
  if (!readText(BODY, BODY + bytes)) return INVALID_JSON
  const result = takeEach(TAPE, takeLog)
  Records.finish()
  return result
}

/** The status of a log is its level, and its tags may have the environment and the service. */
function takeLog(log: i32): i32 {
  if (Node.of(log).kind !== OBJECT) return Records.reject(codes.WRONG_TYPE, ENTRY)
  // The Agent sends an empty object to test the connection.
  if (Node.of(log).next === log + NODE_BYTES) return 0
  Mapper.begin(log)
  const status = memberOf(log, STATUS)
  const level = memberOf(log, LEVEL) === 0 ? levelOfStatus(status) : 0
  record.addAll(log, level === 0 ? 0 : status)
  if (level !== 0) record.add(named(LEVEL, level), record.first)
  const tags = memberOf(log, TAGS)
  if (tags !== 0 && Node.of(tags).kind === STRING) {
    Decoded.read(Node.of(tags))
    if (memberOf(log, ENVIRONMENT) === 0 && memberOf(log, ENV) === 0) addTag(ENV)
    if (memberOf(log, SERVICE) === 0) addTag(SERVICE)
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

/** Adds the value of the last tag with a name in what was decoded: `env:prod,version:1.2`. The tags stay in the metadata. An empty one is none. */
function addTag(literal: i32): void {
  const name = Literal.of(literal)
  const end = Decoded.end
  if (end - Decoded.start > TAGS_BYTES_MAX) return
  let from = 0
  let to = 0
  for (let at = Decoded.start, next = at; at < end; at = next + 1) {
    next = at
    while (next < end && load<u8>(next) !== COMMA) next += 1
    Trimmed.read(at, next)
    if (!name.isAt(Trimmed.start)) continue
    Trimmed.read(Trimmed.start + name.bytes, next)
    if (Trimmed.start >= next || load<u8>(Trimmed.start) !== COLON) continue
    Trimmed.read(Trimmed.start + 1, next)
    from = Trimmed.start
    to = Trimmed.end
  }
  if (from >= to) return
  const value = Tape.end
  Tape.add(TEXT, from, to)
  record.add(named(literal, value), record.first)
}
