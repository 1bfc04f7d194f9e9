import * as columns from '../columns'
import { Decoded } from '../draft'
import { fieldOf } from '../fields'
import { metadataNamesMax } from '../limits'
import { Literal, literal } from '../literals'
import { PINO, readLevelText } from '../loggers/levels'
import { findEnvironment } from '../loggers/words'
import { LITERAL_BYTES } from '../memory'
import { addNumbered, hasRepeated, Taken } from '../names'
import { hasAtMostCharacters } from '../records'
import { Node, NODE_BYTES, REPEATED, Tape } from '../tape'

/** More names than a row may have, with those that become columns. */
export const NAMES_MAX: i32 = metadataNamesMax + 32

// The names of labels and of structured metadata that may become columns. The first with a usable value counts.
const FIRST: i32 = literal('level')
literal('detected_level')
literal('severity')
literal('severity_text')
literal('service_name')
literal('service')
literal('app')
literal('application')
literal('app_kubernetes_io_name')
literal('job')
literal('environment')
literal('env')
literal('deployment_environment')
literal('deployment_environment_name')
// The members of the metadata that the mapping adds.
literal('timeUnixNano')
literal('originalLevel')
/** Of the names above. */
const LENGTHS: v128 = i8x16(5, 14, 8, 13, 12, 7, 3, 11, 22, 3, 11, 3, 22, 27, 12, 13)
export const LEVEL_ROLES: i32 = 0
export const SERVICE_ROLES: i32 = 4
export const ENVIRONMENT_ROLES: i32 = 10
export const TIME_ROLE: i32 = 14
export const ORIGINAL_LEVEL_ROLE: i32 = 15
export const ROLES: i32 = 16

/** Promtail and Loki write this name if they know none. */
const UNKNOWN_SERVICE: i32 = literal('unknown_service')

/** The place of a name above; negative if it is another one. */
export function roleOf(name: Node): i32 {
  if (name.bytes > i8.MAX_VALUE) return -1
  let bits = i8x16.bitmask(i8x16.eq(LENGTHS, i8x16.splat(<i8>name.bytes)))
  for (; bits !== 0; bits &= bits - 1)
    if (Literal.of(FIRST + ctz(bits) * LITERAL_BYTES).isAt(name.start)) return ctz(bits)
  return -1
}

/** Whether a value can become the column of a role. */
export function isUsable(role: i32, value: Node): bool {
  if (role >= TIME_ROLE) return true
  if (!value.isString) return false
  Decoded.read(value)
  const start = Decoded.start
  const end = Decoded.end
  if (role < SERVICE_ROLES) return readLevelText(PINO, start, end) !== 0
  if (role >= ENVIRONMENT_ROLES) return findEnvironment(start, end) !== 0
  const unknown = Literal.of(UNKNOWN_SERVICE)
  return (
    start < end &&
    !(end - start === unknown.bytes && unknown.isAt(start)) &&
    hasAtMostCharacters(value, fieldOf(columns.service).charactersMax)
  )
}

/** A name gets numbers from 2 to this one. */
export const NUMBER_MAX: i32 = 16

/**
 * Ends an object that was added to the tape. All values of a repeated name are kept: the others get names with numbers.
 *
 * @returns false if there are too many
 */
export function endObject(object: i32, count: i32): bool {
  const end = Tape.end
  Node.of(object).next = end
  if (count < 2 || !hasRepeated(object, count)) return true
  Taken.begin(count)
  for (let name = object + NODE_BYTES; name < end; name += 2 * NODE_BYTES)
    if (!Node.of(name).has(REPEATED)) Taken.take(name)
  for (let address = object + NODE_BYTES; address < end; address += 2 * NODE_BYTES) {
    const name = Node.of(address)
    name.next = address + NODE_BYTES
    if (!name.has(REPEATED)) continue
    const free = addFree(name)
    if (free === 0) return false
    name.head = Node.of(free).head
    name.start = Node.of(free).start
    name.end = Node.of(free).end
  }
  return true
}

/** Adds a name with the first number that makes it a new one. @returns its node; 0 if it would be a large number */
export function addFree(name: Node): i32 {
  for (let number = 2; number <= NUMBER_MAX; number += 1) {
    const renamed = addNumbered(name, number)
    if (Taken.take(renamed)) return renamed
  }
  return 0
}
