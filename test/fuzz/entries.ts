import { limits } from '@sluice/schema'
import { integer, pick, type Random } from './random.ts'

type Json = Record<string, unknown>

const levelNames = ['log', 'debug', 'info', 'success', 'warn', 'error'] as const
const texts = [
  '',
  'm',
  'GET /v1/things 200',
  'tab 	 newline \n backslash \\ quote " nul \0',
  '\\N',
  '\\t',
  '\u2028',
  '😀 é 日本',
  '\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
  '﻿',
  '{"level":"info"}',
  "'; DROP TABLE logs; --",
]
const timestamps = [
  '2026-11-20T22:43:01Z',
  '2026-11-20T22:43:01.123456789+05:30',
  '1970-01-01T00:00:00Z',
  '2016-12-31T23:59:60Z',
  '2261-12-31T23:59:59.999999Z',
  '2028-02-29T00:00',
  '2262-01-01T00:00:00Z',
  '2026-02-30T00:00:00Z',
  '',
  'now',
]
const names = [
  'a',
  'user.id',
  '',
  '0',
  '__proto__',
  'constructor',
  'toString',
  'logs',
  'Level',
  'a/b',
  '~1',
  '\\',
  '\n',
  '"',
  'resourceLogs',
  'id',
  'project_id',
  'metadata_text',
  '😀',
  'level ',
  'hasOwnProperty',
  'toJSON',
  'rawJSON',
]
const numbers = [0, -0, 1, -1, 0.1, 1e21, 5e-324, 2 ** 53, -(2 ** 53) - 2, 1.7976931348623157e308, 42]
const fields = [
  'level',
  'message',
  'metadata',
  'environment',
  'source',
  'service',
  'url',
  'pathname',
  'stack',
  'timestamp',
]

/** An entry that is valid. */
export function goodEntry(random: Random, number: number): Json {
  const entry: Json = { level: pick(random, levelNames), message: `${number} ${pick(random, texts)}` }
  if (random() < 0.5) entry['service'] = pick(random, ['api', 'worker', 'web'])
  if (random() < 0.5) entry['metadata'] = { request: number, [pick(random, names)]: anyValue(random, 3) }
  if (random() < 0.3) entry['timestamp'] = pick(random, timestamps.slice(0, 6))
  if (random() < 0.2) entry['stack'] = `Error: ${pick(random, texts)}\n    at file.ts:1:2`
  if (random() < 0.2) entry['environment'] = pick(random, ['development', 'staging', 'production', null])
  if (random() < 0.1) entry[`x-${pick(random, names)}`] = anyValue(random, 2)
  return entry
}

/** A value that may be an entry, made of a good one by one to three changes. */
export function mutatedEntry(random: Random, number: number): unknown {
  const entry = goodEntry(random, number)
  for (let change = integer(random, 1, 3); change > 0; change -= 1) {
    const mutate = pick(random, mutations)
    mutate(entry, random)
  }
  return random() < 0.03 ? anyValue(random, 2) : entry
}

const mutations: readonly ((entry: Json, random: Random) => void)[] = [
  (entry, random) => {
    entry[pick(random, fields)] = anyValue(random, 3)
  },
  (entry, random) => {
    Reflect.deleteProperty(entry, pick(random, fields))
  },
  (entry, random) => {
    define(entry, pick(random, names), anyValue(random, 4))
  },
  (entry, random) => {
    entry['timestamp'] = pick(random, timestamps)
  },
  (entry, random) => {
    entry['level'] = pick(random, ['INFO', 'fatal', '', null, 1, ['info'], { toString: 'info' }])
  },
  (entry, random) => {
    entry[pick(random, fields)] = `half ${pick(random, ['\ud83d', '\ude00', '\ude00\ud83d'])}`
  },
  (entry, random) => {
    define(entry, pick(random, ['metadata', ...names]), nested(random, integer(random, 10, 40)))
  },
  (entry, random) => {
    // Rare, for they are large: at a limit, or just past it.
    if (random() < 0.05)
      entry['message'] = pick(random, ['a', '\t', '😀']).repeat(
        limits.messageCharactersMax / 2 + integer(random, -1, 1),
      )
    if (random() < 0.1) entry['url'] = 'u'.repeat(limits.urlCharactersMax + integer(random, 0, 1))
    if (random() < 0.1) entry['service'] = '😀'.repeat(limits.serviceCharactersMax + integer(random, 0, 1))
  },
  (entry, random) => {
    const count = random() < 0.1 ? limits.metadataNamesMax + integer(random, -1, 1) : integer(random, 0, 20)
    entry['metadata'] = Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, i]))
  },
]

/** A JSON value of at most so many levels. */
function anyValue(random: Random, levelsMax: number): unknown {
  const kind = integer(random, 0, levelsMax > 0 ? 7 : 5)
  if (kind === 0) return pick(random, numbers)
  if (kind === 1) return pick(random, [null, true, false])
  if (kind <= 5) return pick(random, texts)
  if (kind === 6) return Array.from({ length: integer(random, 0, 3) }, () => anyValue(random, levelsMax - 1))
  const object: Json = {}
  for (let i = integer(random, 0, 3); i > 0; i -= 1)
    define(object, pick(random, names), anyValue(random, levelsMax - 1))
  return object
}

/** Defined, not assigned: assigning to `__proto__` would set the prototype. */
function define(object: Json, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true })
}

function nested(random: Random, levels: number): unknown {
  let value: unknown = {}
  for (let level = 1; level < levels; level += 1) value = random() < 0.5 ? [value] : { a: value }
  return value
}
