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

/** What no name of an index may have. */
const indexFaults: readonly (readonly [RegExp, fault: string])[] = [
  [/^$/, 'must not be empty'],
  [
    /[\\/*?"<>| ,]/,
    String.raw`must not contain the following characters ['\','/','*','?','"','<','>','|',' ',',']`,
  ],
  [/\p{Cc}/u, 'must not contain control characters'],
  [/#/, "must not contain '#'"],
  [/:/, "must not contain ':'"],
  [/^[_+-]/, "must not start with '_', '-', or '+'"],
  [/^\.\.?$/, "must not be '.' or '..'"],
]
const INDEX_BYTES_MAX = 255

/** Names with a date (`<logs-{now/d}>`) are not calculated. @returns undefined for the name of an index */
export function faultOfIndex(name: string): string | undefined {
  const bytes = Buffer.byteLength(name)
  if (bytes > INDEX_BYTES_MAX) return `index name is too long, (${bytes} > ${INDEX_BYTES_MAX})`
  const [, fault] = indexFaults.find(([pattern]) => pattern.test(name)) ?? []
  return fault ?? (name === name.toLowerCase() ? undefined : 'must be lowercase')
}

/** Bits of the head of a node in `assembly/tape.ts`. */
const KIND = 0x0f
const NULL = 0
const ESCAPED = 0x10

/** The numbers of an `Item` in `assembly/shippers/bulk.ts`, with its two nodes. */
const ITEM_NUMBERS = 10

/** Reads the items that the scanner has left in its memory. Equal ones without an id that follow each other are one object. */
export function readItems(memory: Buffer, start: number, count: number): BulkItem[] {
  const readName = (head: number, from: number, to: number): string | null => {
    if ((head & KIND) === NULL) return null
    const text = memory.toString('utf8', from, to)
    return (head & ESCAPED) === 0 ? text : (JSON.parse(`"${text}"`) as string)
  }
  const items: BulkItem[] = []
  const numbers = new Int32Array(memory.buffer, memory.byteOffset + start, count * ITEM_NUMBERS)
  // Many items have the index of the one before them, at the same place or as the same text.
  let index: string | null = null
  let lastStart = -1
  for (let n = 0; n < numbers.length; n += ITEM_NUMBERS) {
    const at = (place: number): number => numbers[n + place] ?? 0
    const action = actions[at(0)] ?? 'index'
    const id = readName(at(6), at(7), at(8))
    const last = at(3) === lastStart && id === null ? items.at(-1) : undefined
    if (last?.id === null && last.action === action) {
      items.push(last)
      continue
    }
    if (at(3) !== lastStart) index = readName(at(2), at(3), at(4))
    lastStart = at(3)
    items.push({ action, index, id, indexFault: at(1) === 0 ? undefined : faultOfIndex(index ?? '') })
  }
  return items
}
