// Records, resources and scopes, as objects whose members are those of the metadata, in their order. Their nodes are at fixed addresses.
import { Literal, literal } from '../literals'
import { RECORD as NODES_OF_BODY } from '../memory'
import { Metadata } from '../metadata'
import { integerOf, setInteger } from '../scalars'
import { DIGITS, INTEGER, NAME, Node, NODE_BYTES, NULL, OBJECT, REPEATED, Tape } from '../tape'

const MEMBER_BYTES: i32 = 2 * NODE_BYTES
/** Four objects with twenty members. */
const PARTS_BYTES: i32 = 4 * NODE_BYTES + 20 * MEMBER_BYTES
const parts: i32 = <i32>memory.data(PARTS_BYTES, 16)
let last: i32 = parts
Tape.end = parts

export const RESOURCE: i32 = part()
export const RESOURCE_ATTRIBUTES: i32 = member('resource')
export const RESOURCE_SCHEMA_URL: i32 = member('resource_schema_url')
export const RESOURCE_DROPPED: i32 = member('resource_dropped_attributes_count')

export const SCOPE: i32 = part()
export const SCOPE_NAME: i32 = member('name')
export const SCOPE_VERSION: i32 = member('version')
export const SCOPE_ATTRIBUTES: i32 = member('attributes')
export const SCOPE_SCHEMA_URL: i32 = member('schema_url')
export const SCOPE_DROPPED: i32 = member('dropped_attributes_count')
/** The scope as a member. */
export const SCOPE_OF_METADATA: i32 = part()
nameOf(SCOPE_OF_METADATA, member('scope')).next = SCOPE

export const RECORD: i32 = part()
export const ATTRIBUTES: i32 = member('attributes')
export const DROPPED: i32 = member('dropped_attributes_count')
export const TRACE_ID: i32 = member('trace_id')
export const SPAN_ID: i32 = member('span_id')
export const FLAGS: i32 = member('flags')
export const EVENT_NAME: i32 = member('event_name')
export const SEVERITY_NUMBER: i32 = member('severity_number')
export const SEVERITY_TEXT: i32 = member('severity_text')
export const TIME: i32 = member('time_unix_nano')
export const OBSERVED_TIME: i32 = member('observed_time_unix_nano')
/** The last one. What is in the body is not on the tape: it may alternate with attributes. */
export const BODY: i32 = member('body')
nameOf(RECORD, BODY).next = NODES_OF_BODY

function part(): i32 {
  last = Tape.end
  Tape.add(OBJECT, 0, 0)
  return last
}

/** Adds a member to the last part. @returns the place of its value, counted from the part in nodes */
function member(name: string): i32 {
  const word = Literal.of(literal(name))
  Tape.add(NAME, word.start, word.end)
  Tape.add(NULL, 0, 0)
  if (Tape.end > parts + PARTS_BYTES) unreachable()
  Node.of(last).next = Tape.end
  return (Tape.end - last) / NODE_BYTES - 1
}

export function nameOf(part: i32, place: i32): Node {
  return Node.of(part + (place - 1) * NODE_BYTES)
}

/** The address of a value. It is null if there is none. */
export function valueOf(part: i32, place: i32): i32 {
  return nameOf(part, place).next
}

/** Begins to read a part: all of its values are null. Its attributes are the last object of the tape. */
export function begin(part: i32, attributes: i32): void {
  const end = Node.of(part).next
  for (let name = part + NODE_BYTES; name < end; name += MEMBER_BYTES) {
    Node.of(name).head = NAME
    setInteger(name + NODE_BYTES, 0)
    Node.of(name + NODE_BYTES).head = NULL
  }
  nameOf(part, attributes).next = Tape.end
  Tape.add(OBJECT, 0, 0)
}

/**
 * Leaves out the members with the default values of Protocol Buffers.
 *
 * @param isWritten whether the others are added to the metadata
 * @returns whether there are others
 */
export function prune(part: i32, isWritten: bool): bool {
  let hasMembers = false
  const end = Node.of(part).next
  for (let name = part + NODE_BYTES; name < end; name += MEMBER_BYTES) {
    const value = Node.of(name).next
    if (Node.of(name).has(REPEATED)) continue
    if (isDefault(value)) Node.of(name).head |= REPEATED
    else {
      hasMembers = true
      if (isWritten) Metadata.addMember(name)
    }
  }
  return hasMembers
}

function isDefault(address: i32): bool {
  const node = Node.of(address)
  const kind = node.kind
  if (kind === OBJECT) return !hasNames(address)
  if (kind === INTEGER || kind === DIGITS) return integerOf(address) === 0
  return node.bytes === 0
}

/** Whether an object has a name that was not taken out. */
function hasNames(object: i32): bool {
  const end = Node.of(object).next
  for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next)
    if (!Node.of(address).has(REPEATED)) return true
  return false
}
