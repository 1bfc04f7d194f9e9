import { COLON, COMMA } from '../bytes'
import * as codes from '../codes'
import { Decoded } from '../draft'
import { ENTRY } from '../errors'
import * as constants from '../loggers/constants'
import { isNamed, memberOf } from '../loggers/members'
import { hasTooManyNames, isTooDeep, Mapper } from '../loggers/mapper'
import { findLevel, isBlank } from '../loggers/words'
import { BODY, TAPE } from '../memory'
import { Metadata } from '../metadata'
import { countNames } from '../names'
import { INVALID_JSON, Records } from '../records'
import { LONE } from '../strings'
import { ARRAY, Node, NODE_BYTES, OBJECT, REPEATED, STRING, Tape, TEXT } from '../tape'
import { readText } from '../text'

/** Longer lists of tags are not searched. */
const TAGS_BYTES_MAX: i32 = 8_192

/** Scans a body of Datadog's logs API: an array of logs, or one log. @returns 0, or why the request is rejected */
export function scanDatadog(bytes: i32): i32 {
  Records.clear()
  if (!readText(BODY, BODY + bytes)) return INVALID_JSON
  let result = 0
  if (Node.of(TAPE).kind !== ARRAY) result = takeLog(TAPE)
  else {
    const end = Node.of(TAPE).next
    for (let address = TAPE + NODE_BYTES; address < end && result === 0; address = Node.of(address).next)
      result = takeLog(address)
  }
  Records.finish()
  return result
}

/** The status of a log is its level, and its tags may have the environment and the service. */
function takeLog(log: i32): i32 {
  if (Node.of(log).kind !== OBJECT) return reject(codes.WRONG_TYPE)
  if (isTooDeep(log)) return reject(codes.TOO_DEEP)
  const names = countNames(log)
  if (hasTooManyNames(log)) return reject(codes.TOO_MANY_NAMES)
  // The Agent sends an empty object to test the connection.
  if (names === 0) return 0
  Mapper.begin(names, Node.of(log).has(LONE))
  const record = Mapper.record
  const statusValue = memberOf(log, 'status')
  const status = statusValue === 0 || memberOf(log, 'level') !== 0 ? 0 : levelOfStatus(statusValue)
  const end = Node.of(log).next
  for (let address = log + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const name = Node.of(address)
    if (!name.has(REPEATED) && (status === 0 || !isNamed(name, 'status'))) record.add(address)
  }
  if (status !== 0) record.add(constants.named(constants.LEVEL, status))
  const tags = memberOf(log, 'ddtags')
  if (tags !== 0) {
    Tags.read(Node.of(tags))
    if (Tags.env !== 0 && memberOf(log, 'environment') === 0 && memberOf(log, 'env') === 0)
      record.add(constants.named(constants.ENV, Tags.env))
    if (Tags.service !== 0 && memberOf(log, 'service') === 0)
      record.add(constants.named(constants.SERVICE, Tags.service))
  }
  Mapper.map()
  return Mapper.take()
}

function reject(code: i32): i32 {
  Metadata.discard()
  return Records.reject(code, ENTRY)
}

const OK: u16 = 0x6b6f

/** The node of the level of a status; 0 if it is none. */
function levelOfStatus(address: i32): i32 {
  const status = Node.of(address)
  if (status.kind !== STRING) return 0
  Decoded.read(status)
  const isOk = Decoded.end - Decoded.start === 2 && (load<u16>(Decoded.start) | 0x2020) === OK
  if (isOk) return constants.SUCCESS
  return findLevel(Decoded.start, Decoded.end) === 0 ? 0 : address
}

/** `env:prod,version:1.2`. The tags stay in the metadata as well. */
class Tags {
  /** The nodes of the values of the last tags with these names; 0 if there are none, or if they are empty. */
  static env: i32 = 0
  static service: i32 = 0

  static read(tags: Node): void {
    Tags.env = 0
    Tags.service = 0
    if (tags.kind !== STRING) return
    Decoded.read(tags)
    const end = Decoded.end
    if (end - Decoded.start > TAGS_BYTES_MAX) return
    for (let at = Decoded.start; at <= end;) {
      let last = at
      while (last < end && load<u8>(last) !== COMMA) last += 1
      Tags.readTag(at, last)
      at = last + 1
    }
  }

  private static readTag(at: i32, end: i32): void {
    while (at < end && isBlank(load<u8>(at))) at += 1
    const isEnv = end - at >= 4 && (load<u32>(at) & 0xffffff) === ENV
    const isService = !isEnv && end - at >= 8 && (load<u64>(at) & 0xffffffffffffff) === SERVICE
    if (!isEnv && !isService) return
    at += isEnv ? 3 : 7
    while (at < end && isBlank(load<u8>(at))) at += 1
    if (at === end || load<u8>(at) !== COLON) return
    at += 1
    while (at < end && isBlank(load<u8>(at))) at += 1
    while (at < end && isBlank(load<u8>(end - 1))) end -= 1
    const node = at < end ? Tape.end : 0
    if (node !== 0) Tape.add(TEXT, at, end)
    if (isEnv) Tags.env = node
    else Tags.service = node
  }
}

/** `env` and `service`, as little-endian numbers. */
const ENV: u32 = 0x766e65
const SERVICE: u64 = 0x65636976726573
