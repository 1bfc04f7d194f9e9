/** In the order of `assembly/shippers/bulk.ts`. */
const actions = ['index', 'create', 'update', 'delete'] as const

/** An action of a bulk request, and what is wrong with it. */
export interface BulkItem {
  readonly action: (typeof actions)[number]
  /** The index of the action, or else of the path. Null if there is none. */
  readonly index: string | null
  readonly id: string | null
  /** What Elasticsearch does not like about the name of the index, in its words. */
  readonly indexFault: string | undefined
}

/** In the order of `assembly/shippers/bulk.ts`, from 1. */
const indexFaults: readonly ((index: string) => string)[] = [
  (index) => `index name is too long, (${Buffer.byteLength(index)} > 255)`,
  () => 'must not be empty',
  () => String.raw`must not contain the following characters ['\','/','*','?','"','<','>','|',' ',',']`,
  () => 'must not contain control characters',
  () => "must not contain '#'",
  () => "must not contain ':'",
  () => "must not start with '_', '-', or '+'",
  () => "must not be '.' or '..'",
  () => 'must be lowercase',
]

/** Why an action is malformed, in the order of `assembly/shippers/bulk.ts`. The text that is not JSON has a fault of its own. */
const malformations = [
  'Expected an object.',
  undefined,
  'Expected one of create, delete, index and update, with an object.',
  'Expected a simple value for field [_index].',
  'Expected a simple value for field [_id].',
  'The document after the action is missing.',
] as const

/** @param fault why the text of the line is not JSON */
export function describeMalformation(reason: number, fault: () => string): string {
  return malformations[reason] ?? sentence(fault())
}

function sentence(fault: string): string {
  return `${fault.charAt(0).toUpperCase()}${fault.slice(1)}.`
}

/** Bits of the head of a node in `assembly/tape.ts`. */
const KIND = 0x0f
const NULL = 0
const ESCAPED = 0x10

/** The numbers of an `Item` in `assembly/shippers/bulk.ts`. */
const ITEM_NUMBERS = 8

/** Reads the items that the scanner has left in its memory. */
export function readItems(memory: Buffer, start: number, count: number): BulkItem[] {
  const numbers = new Int32Array(memory.buffer, memory.byteOffset + start, count * ITEM_NUMBERS)
  const readName = (head: number, from: number, to: number): string | null => {
    if ((head & KIND) === NULL) return null
    const text = memory.toString('utf8', from, to)
    return (head & ESCAPED) === 0 ? text : (JSON.parse(`"${text}"`) as string)
  }
  const items: BulkItem[] = []
  // Many items have the index of the one before them, at the same place or as the same text.
  let index: string | null = null
  let indexStart = -1
  for (let n = 0; n < numbers.length; n += ITEM_NUMBERS) {
    const at = (place: number): number => numbers[n + place] ?? 0
    const fault = at(1)
    if (at(3) !== indexStart) index = readName(at(2), at(3), at(4))
    indexStart = at(3)
    items.push({
      action: actions[at(0)] ?? 'index',
      index,
      id: readName(at(5), at(6), at(7)),
      indexFault: fault === 0 ? undefined : indexFaults[fault - 1]?.(index ?? ''),
    })
  }
  return items
}
