import { limits } from '@sluice/schema'
import type { ProblemCode } from '../../src/problems.ts'
import type { Body } from '../support/test-api.ts'

/** A body that is rejected as a whole. */
export type BadBody = readonly [what: string, body: Body, code: ProblemCode]

const entry = '{"level":"info","message":"m"}'
/** An entry with these bytes as its message. */
const message = (...bytes: number[]): Buffer =>
  Buffer.concat([Buffer.from('{"level":"info","message":"'), Buffer.from(bytes), Buffer.from('"}')])
const many = (count: number): string => Array.from({ length: count }, () => entry).join(',')

const invalidJson: readonly BadBody[] = [
  ['a trailing comma in an object', '{"level":"info","message":"m",}', 'invalid_json'],
  ['NaN', '{"level":"info","message":"m","n":NaN}', 'invalid_json'],
  ['single quotes', "{'level':'info','message':'m'}", 'invalid_json'],
  ['unquoted names', '{level:"info",message:"m"}', 'invalid_json'],
  ['a byte order mark', `\ufeff${entry}`, 'invalid_json'],
  ['a leading zero', '{"level":"info","message":"m","n":01}', 'invalid_json'],
  ['a raw newline in a string', '{"level":"info","message":"a\nb"}', 'invalid_json'],
  ['a NUL after the end', `${entry}\0`, 'invalid_json'],
  ['an unknown escape', '{"level":"info","message":"\\x41"}', 'invalid_json'],
  ['a JSON hijacking prefix', `)]}',\n${entry}`, 'invalid_json'],
  ['100,000 open arrays', '['.repeat(100_000), 'invalid_json'],
]

const invalidUtf8: readonly BadBody[] = [
  ['a byte that never occurs in UTF-8', message(0xff), 'invalid_utf8'],
  ['an overlong NUL', message(0xc0, 0x80), 'invalid_utf8'],
  ['a surrogate pair in bytes (CESU-8)', message(0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80), 'invalid_utf8'],
  ['a code point beyond U+10FFFF', message(0xf4, 0x90, 0x80, 0x80), 'invalid_utf8'],
  ['UTF-16 without a byte order mark', Buffer.from(entry, 'utf16le'), 'invalid_json'],
  ['gzip without Content-Encoding', Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]), 'invalid_utf8'],
  [
    'invalid bytes in the last of many entries',
    Buffer.concat([Buffer.from(`[${many(50)},`), message(0xfe), Buffer.from(']')]),
    'invalid_utf8',
  ],
]

const withoutEntries: readonly BadBody[] = [
  ['no body', undefined, 'empty_body'],
  ['an empty body', '', 'empty_body'],
  ['only whitespace', ' \r\n\t ', 'invalid_json'],
  ['an entry in a string', JSON.stringify(entry), 'invalid_body'],
  ['logs as an object', '{"logs":{"0":{"level":"info","message":"m"},"length":1}}', 'invalid_body'],
  ['logs as a number in a valid entry', '{"level":"info","message":"m","logs":1}', 'invalid_body'],
  ['logs with a last duplicate that is not an array', `{"logs":[${entry}],"logs":0}`, 'invalid_body'],
  ['logs in __proto__', `{"__proto__":{"logs":[${entry}]}}`, 'invalid_entry'],
  ['logs in another case', `{"Logs":[${entry}]}`, 'invalid_entry'],
  ['resourceLogs in snake case', '{"resource_logs":[]}', 'invalid_entry'],
]

const tooLarge: readonly BadBody[] = [
  ['101 entries', `{"logs":[${many(limits.entriesPerRequestMax + 1)}]}`, 'too_many_entries'],
  ['101 entries in a plain array', `[${many(limits.entriesPerRequestMax + 1)}]`, 'too_many_entries'],
  ['a body of one byte more than the limit', `"${'a'.repeat(limits.bodyBytesMax - 1)}"`, 'body_too_large'],
]

export const badBodies: readonly BadBody[] = [...invalidJson, ...invalidUtf8, ...withoutEntries, ...tooLarge]
