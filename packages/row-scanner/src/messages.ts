import { textAt } from './memory.ts'

/** What fields must be in JSON, by their types: in the order of `assembly/messages.ts`. */
const types = [
  'an unsigned 32-bit integer',
  'an unsigned 32-bit integer',
  'a 32-bit integer',
  'a 64-bit integer',
  'true or false',
  'an unsigned 64-bit integer',
  'a double',
  'a string',
  'a string',
  'a string',
] as const
/** The parts of the place of a field. */
const AS_ARRAY = 1
const AS_ELEMENT = 2
const PARTS_MASK = 15
/** The parts of a field: its type, and the place of its name, which begins with its length and a quote. */
const TYPE_SHIFT = 3
const NAME_OFFSET = 4
const CHARACTERS_OFFSET = 5

/**
 * Says that a field of a message has a wrong type in JSON.
 *
 * @param where its place in the memory, and what of it is wrong
 */
export function wrongType(memory: Buffer, where: number): string {
  const part = where & PARTS_MASK
  const field = where - part
  const name = memory.readInt32LE(field + NAME_OFFSET)
  const start = name + CHARACTERS_OFFSET
  const text = memory.toString('latin1', start, start + memory.readInt32LE(name))
  if (part === AS_ELEMENT) return `an element of ${text} must be an object`
  const type = types[(memory[field] ?? 0) >> TYPE_SHIFT] ?? 'an object'
  return `${text} must be ${part === AS_ARRAY ? 'an array' : type}`
}

/**
 * Says why a body is not the message of its protocol.
 *
 * @param fault the place of a string of AssemblyScript
 * @param at the place of the fault in the memory, or that of the field with a wrong type, which is before the body
 * @param body the place of the body
 */
export function describeMessageFault(memory: Buffer, fault: number, at: number, body: number): string {
  if (at < body) return wrongType(memory, at)
  return `${textAt(memory, fault)}, at byte ${at - body}`
}
