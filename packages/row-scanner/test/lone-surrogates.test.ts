import { expect, it } from 'vitest'
import { errorOf, readRow } from './support/entries.ts'

const entry = (members: string): string => `{"level":"info","message":"m",${members}}`
/** Twice its bytes are left in a path, after `/metadata`. */
const longName = 'n'.repeat(251)

// Fields and metadata of any entry: the property of invalid entries in rows.test.ts.
it.each([
  ['that is a low surrogate', '{"level":"info","message":"\\ude00"}', '/message'],
  ['before a pair', '{"level":"info","message":"\\ud83d\\ud83d\\ude00"}', '/message'],
  ['with uppercase digits', '{"level":"info","message":"\\uD83D"}', '/message'],
  ['in a nested value', entry('"metadata":{"a":[0,{"b":"\\ud83d"}]}'), '/metadata/a/1/b'],
  ['under a name that a pointer escapes', entry('"metadata":{"a/b~c":"\\ud83d"}'), '/metadata/a~1b~0c'],
  ['in a name of the metadata', entry('"metadata":{"\\ud83d":1}'), '/metadata'],
  ['in a nested name', entry('"metadata":{"a":[{"\\ud83d":1}]}'), '/metadata/a/0'],
  ['in the name of an unknown field', entry('"\\ud83d":1'), ''],
  ['in an unknown field', entry('"extra":{"a":"\\ud83d"}'), '/extra/a'],
  ['under a long name', entry(`"metadata":{"${longName}":"\\ud83d"}`), `/metadata/${longName}`],
  ['under a longer name', entry(`"metadata":{"${longName}n":"\\ud83d"}`), '/metadata'],
  ['in an unknown field with a longer name', entry(`"${longName.repeat(2)}":"\\ud83d"`), ''],
])(
  'a lone surrogate %s is rejected with its path, or the path of an object around it',
  (_where, text, path) => {
    expect(errorOf(text)).toMatchObject({ path, code: 'invalid_unicode' })
  },
)

it.each([
  ['an escaped pair', '"\\ud83d\\ude00"', '"😀"'],
  ['an escaped backslash before "ud83d"', '"\\\\ud83d"', '"\\\\ud83d"'],
  ['the characters before and after the surrogates', '"\\ud7ff\\ue000"', '"\ud7ff\ue000"'],
])('a string without a lone surrogate is stored unchanged: %s', (_what, sent, stored) => {
  expect(readRow(`{"level":"info","message":${sent}}`)['message']).toBe(JSON.parse(stored))
  // A name is written anew, a value keeps its form.
  expect(readRow(entry(`"metadata":{${sent}:${sent}}`))['metadata_text']).toBe(`{${stored}:${sent}}`)
})
