import { limits } from '@sluice/schema'
import type { ProblemCode } from '../../src/problems.ts'
import type { Body } from '../support/test-api.ts'

/** A body that is refused as a whole. */
export type BadBody = readonly [what: string, body: Body, code: ProblemCode]

const good = '{"level":"info","message":"m"}'
/** An entry whose message is these bytes. */
const message = (...bytes: number[]): Buffer =>
  Buffer.concat([Buffer.from('{"level":"info","message":"'), Buffer.from(bytes), Buffer.from('"}')])
const many = (count: number): string => Array.from({ length: count }, () => good).join(',')

const noJson: readonly BadBody[] = [
  ['a trailing comma in an object', '{"level":"info","message":"m",}', 'invalid_json'],
  ['a trailing comma in an array', `[${good},]`, 'invalid_json'],
  ['a line comment', `// note\n${good}`, 'invalid_json'],
  ['a block comment', '{"level":"info",/* note */"message":"m"}', 'invalid_json'],
  ['a hash comment', `# note\n${good}`, 'invalid_json'],
  ['NaN', '{"level":"info","message":"m","n":NaN}', 'invalid_json'],
  ['Infinity', '{"level":"info","message":"m","n":-Infinity}', 'invalid_json'],
  ['undefined', '{"level":"info","message":undefined}', 'invalid_json'],
  ['single quotes', "{'level':'info','message':'m'}", 'invalid_json'],
  ['bare names', '{level:"info",message:"m"}', 'invalid_json'],
  ['a byte order mark', `\ufeff${good}`, 'invalid_json'],
  ['a hexadecimal number', '{"level":"info","message":"m","n":0x10}', 'invalid_json'],
  ['a leading zero', '{"level":"info","message":"m","n":01}', 'invalid_json'],
  ['a leading plus', '{"level":"info","message":"m","n":+1}', 'invalid_json'],
  ['a number that ends in a point', '{"level":"info","message":"m","n":1.}', 'invalid_json'],
  ['a raw newline in a text', '{"level":"info","message":"a\nb"}', 'invalid_json'],
  ['a raw NUL in a text', '{"level":"info","message":"a\0b"}', 'invalid_json'],
  ['a NUL after the end', `${good}\0`, 'invalid_json'],
  ['an unknown escape', '{"level":"info","message":"\\x41"}', 'invalid_json'],
  ['a short escape', '{"level":"info","message":"\\u12"}', 'invalid_json'],
  ['an escape in braces', '{"level":"info","message":"\\u{41}"}', 'invalid_json'],
  ['a body that is cut', good.slice(0, -1), 'invalid_json'],
  ['a text that is cut', '{"level":"info","message":"m', 'invalid_json'],
  ['two entries', good + good, 'invalid_json'],
  ['two lines', `${good}\n${good}\n`, 'invalid_json'],
  ['a template', `\`${good}\``, 'invalid_json'],
  ['a call', `callback(${good})`, 'invalid_json'],
  ['a guard', `)]}',\n${good}`, 'invalid_json'],
  ['a form', 'level=info&message=m', 'invalid_json'],
  ['XML', '<entry level="info">m</entry>', 'invalid_json'],
  ['YAML', 'level: info\nmessage: m', 'invalid_json'],
  ['100,000 open arrays', '['.repeat(100_000), 'invalid_json'],
  ['100,000 open objects', '{"a":'.repeat(100_000), 'invalid_json'],
  [
    '100,000 arrays and a number for the exact parser',
    `{"level":"info","message":"m","n":1e400,"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    'invalid_json',
  ],
  [
    '100,000 objects and a number for the exact parser',
    `{"level":"info","message":"m","n":9007199254740993,"a":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`,
    'invalid_json',
  ],
]

const noUtf8: readonly BadBody[] = [
  ['a byte that never is UTF-8', message(0xff), 'invalid_utf8'],
  ['Latin-1', message(0x67, 0x72, 0xfc, 0xdf, 0x65), 'invalid_utf8'],
  ['a continuation alone', message(0x80), 'invalid_utf8'],
  ['a sequence that is cut', message(0xe2, 0x82), 'invalid_utf8'],
  ['a sequence of four that is cut', message(0xf0, 0x9f, 0x98), 'invalid_utf8'],
  ['an overlong slash of two bytes', message(0xc0, 0xaf), 'invalid_utf8'],
  ['an overlong slash of three bytes', message(0xe0, 0x80, 0xaf), 'invalid_utf8'],
  ['an overlong NUL', message(0xc0, 0x80), 'invalid_utf8'],
  ['an overlong quote', message(0xc0, 0xa2), 'invalid_utf8'],
  ['half a surrogate pair in bytes', message(0xed, 0xa0, 0xbd), 'invalid_utf8'],
  ['a surrogate pair in bytes (CESU-8)', message(0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80), 'invalid_utf8'],
  ['beyond U+10FFFF', message(0xf4, 0x90, 0x80, 0x80), 'invalid_utf8'],
  ['a sequence of five bytes', message(0xf8, 0x88, 0x80, 0x80, 0x80), 'invalid_utf8'],
  ['UTF-16', Buffer.from(`\ufeff${good}`, 'utf16le'), 'invalid_utf8'],
  ['UTF-16 without a mark', Buffer.from(good, 'utf16le'), 'invalid_json'],
  ['gzip without saying so', Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]), 'invalid_utf8'],
  ['broken bytes in the last of many entries', brokenLast(), 'invalid_utf8'],
]

const noEntries: readonly BadBody[] = [
  ['no body', undefined, 'empty_body'],
  ['an empty body', '', 'empty_body'],
  ['blanks alone', ' \r\n\t ', 'invalid_json'],
  ['a NUL alone', '\0', 'invalid_json'],
  ['null', 'null', 'invalid_body'],
  ['true', 'true', 'invalid_body'],
  ['a number', '42', 'invalid_body'],
  ['a huge number', '1e400', 'invalid_body'],
  ['a text', '"info"', 'invalid_body'],
  ['an entry in a text', JSON.stringify(good), 'invalid_body'],
  ['logs as null', '{"logs":null}', 'invalid_body'],
  ['logs as an object', '{"logs":{"0":{"level":"info","message":"m"},"length":1}}', 'invalid_body'],
  ['logs as one entry', `{"logs":${good}}`, 'invalid_body'],
  ['logs as a text', '{"logs":"[]"}', 'invalid_body'],
  ['logs as a number', '{"logs":100}', 'invalid_body'],
  ['logs as a huge number', '{"logs":1e400}', 'invalid_body'],
  ['logs as true', '{"logs":true}', 'invalid_body'],
  ['logs that are no array in a good entry', '{"level":"info","message":"m","logs":1}', 'invalid_body'],
  ['logs whose last duplicate is no array', `{"logs":[${good}],"logs":0}`, 'invalid_body'],
  ['logs in __proto__', `{"__proto__":{"logs":[${good}]}}`, 'invalid_entry'],
  ['logs in capitals', `{"Logs":[${good}]}`, 'invalid_entry'],
  ['resourceLogs', '{"resourceLogs":[]}', 'invalid_entry'],
]

const tooMuch: readonly BadBody[] = [
  ['101 entries', `{"logs":[${many(limits.entriesPerBatchMax + 1)}]}`, 'too_many_entries'],
  ['101 entries in a bare array', `[${many(limits.entriesPerBatchMax + 1)}]`, 'too_many_entries'],
  ['101 nulls', `[${Array.from({ length: 101 }, () => 'null').join(',')}]`, 'too_many_entries'],
  ['a million numbers', `[${'0,'.repeat(1_000_000)}0]`, 'too_many_entries'],
  ['a body of one byte too many', `"${'a'.repeat(limits.bodyBytesMax - 1)}"`, 'body_too_large'],
  ['a body of twice the limit', Buffer.alloc(limits.bodyBytesMax * 2, ' '), 'body_too_large'],
]

export const badBodies: readonly BadBody[] = [...noJson, ...noUtf8, ...noEntries, ...tooMuch]

function brokenLast(): Buffer {
  return Buffer.concat([Buffer.from(`[${many(50)},`), message(0xfe), Buffer.from(']')])
}
