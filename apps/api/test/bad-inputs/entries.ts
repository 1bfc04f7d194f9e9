import { limits } from '@sluice/schema'

/** An entry that is rejected: its JSON, and the path and code of the first reason. */
export type BadEntry = readonly [what: string, json: string, reason: string]

/** An entry with one more field, or several. */
const entry = (members: string): string => `{"level":"info","message":"m",${members}}`
const quoted = (characters: number): string => `"${'a'.repeat(characters)}"`
const names = (count: number): string => Array.from({ length: count }, (_, i) => `"n${i}":0`).join(',')
const arrays = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
const objects = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

// The last of two fields with a name counts.
const ofField = (code: string, fields: Readonly<Record<string, string>>): BadEntry[] =>
  Object.entries(fields).map(([field, value]) => [
    `${field} ${value.slice(0, 40)}`,
    entry(`"${field}":${value}`),
    `/${field} ${code}`,
  ])

// packages/rows/test has every value of each field.
const wrongFields: readonly BadEntry[] = [
  ...ofField('wrong_type', { level: '1e400', message: 'null', metadata: '1e400', environment: '1' }),
  ...ofField('wrong_type', { source: '["server"]', url: '{"href":"x"}', timestamp: '1795214581' }),
  ...ofField('wrong_type', { level: '{"toString":"info"}', message: `[${'{},'.repeat(2e5)}{}]` }),
  ...ofField('not_allowed', { level: quoted(1_000_000), environment: '"prod"', source: '""' }),
  ...ofField('not_allowed', { level: '"__proto__"' }),
  ...ofField('invalid_timestamp', { timestamp: '"2026-02-30T00:00:00Z"' }),
  ...ofField('invalid_timestamp', { timestamp: quoted(1_000_000) }),
  ...ofField('too_long', {
    message: quoted(limits.messageCharactersMax + 1),
    stack: quoted(limits.stackCharactersMax + 1),
    url: quoted(limits.urlCharactersMax + 1),
    pathname: quoted(limits.pathnameCharactersMax + 1),
    service: quoted(limits.serviceCharactersMax + 1),
  }),
  ...ofField('too_long', { message: `"${'\\n'.repeat(1_000_000)}"` }),
  ...ofField('invalid_unicode', { message: '"\\ude00\\ud83d"', service: '"\\udc00"' }),
]

const missingFields: readonly BadEntry[] = [
  ['no fields', '{}', ' missing'],
  ['fields in __proto__', '{"__proto__":{"level":"info","message":"m"}}', ' missing'],
  ['no fields next to a large one', `{"a":[${'0,'.repeat(34_000)}0]}`, ' missing'],
  ['an invalid last duplicate', '{"level":"info","level":"x","message":"m"}', '/level not_allowed'],
]

const metadata: readonly BadEntry[] = [
  ['half a pair in the metadata', entry('"metadata":{"a":["\\ud83d"]}'), '/metadata/a/0 invalid_unicode'],
  ['half a pair in a name', entry('"metadata":{"a":{"\\ud83d":1}}'), '/metadata/a invalid_unicode'],
  ['large metadata', entry(`"metadata":{"a":${quoted(limits.metadataBytesMax)}}`), '/metadata too_large'],
  ['a large unknown field', entry(`"a":${quoted(limits.metadataBytesMax)}`), ' too_large'],
  ['200,000 objects in an array', entry(`"metadata":[${'{},'.repeat(2e5)}{}]`), '/metadata wrong_type'],
  ['many names', entry(`"metadata":{${names(limits.metadataNamesMax + 1)}}`), '/metadata too_many_names'],
  ['many unknown fields', entry(names(limits.metadataNamesMax + 1)), ' too_many_names'],
  ['17 levels of nesting', entry(`"metadata":{"a":${arrays(16)}}`), '/metadata too_deep'],
  // Also with a number that JavaScript cannot represent, which another parser reads.
  ['100,000 arrays', entry(`"a":${arrays(1e5)}`), ' too_deep'],
  ['100,000 objects and a large number', entry(`"n":9007199254740993,"a":${objects(1e5)}`), ' too_deep'],
]

export const badEntries: readonly BadEntry[] = [...wrongFields, ...missingFields, ...metadata]
