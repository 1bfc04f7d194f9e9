import { limits } from '@sluice/schema'
import { goodEntry, mutatedEntry } from './entries.ts'
import { happens, integer, pick, pickWeighted, type Random } from './random.ts'

export interface FuzzBody {
  readonly what: string
  readonly bytes: Buffer
  /** How many entries a batch of sound JSON has. */
  readonly entries?: number
  /** Nothing is wrong with it. */
  readonly isGood?: boolean
}

export function makeBody(random: Random, number: number): FuzzBody {
  return pickWeighted(random, kinds)(random, number)
}

type Kind = (random: Random, number: number) => FuzzBody

const kinds: readonly (readonly [number, Kind])[] = [
  [30, good],
  [35, mutated],
  [15, brokenText],
  [8, brokenBytes],
  [5, duplicated],
  [3, odd],
  [3, lines],
  [1, deep],
  [0.05, large],
]

function good(random: Random, number: number): FuzzBody {
  if (happens(random, 0.5)) {
    return { what: 'a good entry', bytes: json(goodEntry(random, number)), isGood: true }
  }
  const count = happens(random, 0.02) ? limits.entriesPerBatchMax : integer(random, 0, 4)
  const logs = Array.from({ length: count }, () => goodEntry(random, number))
  const bytes = json(happens(random, 0.5) ? logs : { logs })
  return { what: 'a good batch', bytes, entries: count, isGood: true }
}

function mutated(random: Random, number: number): FuzzBody {
  const count = happens(random, 0.02)
    ? integer(random, 90, limits.entriesPerBatchMax + 1)
    : integer(random, 0, 5)
  if (count === 0) return { what: 'a mutated entry', bytes: json(mutatedEntry(random, number)) }
  const logs = Array.from({ length: count }, () =>
    happens(random, 0.3) ? goodEntry(random, number) : mutatedEntry(random, number),
  )
  return { what: 'a mutated batch', bytes: json(happens(random, 0.5) ? logs : { logs }), entries: count }
}

const splinters = [
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '\0',
  '\n',
  '	',
  ' ',
  '1e400',
  '9007199254740993',
  '-',
  '0x10',
  'NaN',
  '\\u',
  '\\ud83d',
  '\\u0000',
  '\\x41',
  'null',
  '"__proto__":',
  '"level":1,',
  '/*',
  '//',
  '﻿',
  '\u2028',
]

function brokenText(random: Random, number: number): FuzzBody {
  let text = sound(random, number).bytes.toString()
  for (let edit = integer(random, 1, 3); edit > 0; edit -= 1) {
    const at = integer(random, 0, text.length)
    const length = integer(random, 0, 6)
    if (happens(random, 0.2)) text = text.slice(0, at)
    else text = text.slice(0, at) + pick(random, splinters) + text.slice(at + length)
  }
  return { what: 'broken text', bytes: Buffer.from(text) }
}

function brokenBytes(random: Random, number: number): FuzzBody {
  const { bytes } = sound(random, number)
  for (let flip = integer(random, 1, 4); flip > 0; flip -= 1) {
    const at = integer(random, 0, bytes.length - 1)
    bytes[at] = happens(random, 0.5)
      ? integer(random, 0x80, 0xff)
      : (bytes[at] ?? 0) ^ (1 << integer(random, 0, 7))
  }
  return { what: 'broken bytes', bytes }
}

/** Names that come twice, in the entry, its metadata and the batch. */
function duplicated(random: Random, number: number): FuzzBody {
  const entry = json(goodEntry(random, number)).toString().slice(1)
  const again = pick(random, [
    '"level":"x",',
    '"level":"info",',
    '"metadata":{"a":1,"a":9007199254740993},',
    '"message":1e400,',
  ])
  const text = `{${again}${entry}`
  const bytes = Buffer.from(happens(random, 0.3) ? `{"logs":[],"logs":[${text}]}` : text)
  return { what: 'duplicate names', bytes }
}

const oddities = [
  '',
  ' ',
  'null',
  '0',
  '""',
  '[]',
  '{}',
  '{"logs":{}}',
  '{"logs":null}',
  '[[]]',
  '{"logs":[[]]}',
  'undefined',
  '{"resourceLogs":[]}',
  '<xml/>',
  'level=info&message=m',
  '1e400',
  '[1e400]',
  '{"logs":[],"level":"info","message":"m"}',
]

function odd(random: Random): FuzzBody {
  const text = pick(random, oddities)
  return { what: `the body ${text}`, bytes: Buffer.from(text) }
}

/** As newline-delimited JSON, some of whose lines are none. */
function lines(random: Random, number: number): FuzzBody {
  const texts = Array.from({ length: integer(random, 1, 6) }, () =>
    happens(random, 0.2) ? pick(random, splinters) : JSON.stringify(mutatedEntry(random, number)),
  )
  return { what: 'lines', bytes: Buffer.from(texts.join(pick(random, ['\n', '\r\n', '\n\n']))) }
}

function deep(random: Random): FuzzBody {
  const levels = integer(random, 100, 20_000)
  const [open, close] = pick(random, [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const)
  const middle = pick(random, ['1', '1e400', ''])
  // A number or a name that V8's parser alone does not do for: the other ways of parsing recurse.
  const before = pick(random, ['', '"n":1e400,', '"\\n":1,'])
  const nested = `${open.repeat(levels)}${middle}${close.repeat(happens(random, 0.8) ? levels : levels - 1)}`
  const text = happens(random, 0.5) ? nested : `{"level":"info","message":"m",${before}"a":${nested}}`
  return { what: `${levels} levels`, bytes: Buffer.from(text) }
}

function large(random: Random): FuzzBody {
  const size = limits.bodyBytesMax + integer(random, -1, 2) * integer(random, 1, 1_000)
  const bytes = Buffer.alloc(size, pick(random, ['a', '[', '0,', '\n', '"']))
  return { what: `${size} bytes`, bytes }
}

function sound(random: Random, number: number): FuzzBody {
  return happens(random, 0.5) ? good(random, number) : mutated(random, number)
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}
