import { limits } from '@sluice/schema'

/** An entry that is rejected: its JSON, and the path and code of the first reason. */
export type BadEntry = readonly [what: string, json: string, reason: string]

const entry = (members: string): string => `{"level":"info","message":"m",${members}}`
const quoted = (characters: number): string => `"${'a'.repeat(characters)}"`
const names = (count: number): string => Array.from({ length: count }, (_, i) => `"n${i}":0`).join(',')

const wrongTypes: readonly BadEntry[] = [
  ['level as a number', '{"level":1,"message":"m"}', '/level wrong_type'],
  ['level as null', '{"level":null,"message":"m"}', '/level wrong_type'],
  ['level as an array', '{"level":["info"],"message":"m"}', '/level wrong_type'],
  ['level as an object', '{"level":{"toString":"info"},"message":"m"}', '/level wrong_type'],
  ['level as a huge number', '{"level":1e400,"message":"m"}', '/level wrong_type'],
  ['message as a number', '{"level":"info","message":1}', '/message wrong_type'],
  ['message as true', '{"level":"info","message":true}', '/message wrong_type'],
  ['message as null', '{"level":"info","message":null}', '/message wrong_type'],
  ['message as an object', '{"level":"info","message":{}}', '/message wrong_type'],
  ['message as an array', '{"level":"info","message":["m"]}', '/message wrong_type'],
  ['metadata as a string', entry('"metadata":"{}"'), '/metadata wrong_type'],
  ['metadata as an array', entry('"metadata":[]'), '/metadata wrong_type'],
  ['metadata as a number', entry('"metadata":0'), '/metadata wrong_type'],
  ['metadata as a huge number', entry('"metadata":1e400'), '/metadata wrong_type'],
  ['metadata as false', entry('"metadata":false'), '/metadata wrong_type'],
  ['environment as a number', entry('"environment":1'), '/environment wrong_type'],
  ['source as an array', entry('"source":["server"]'), '/source wrong_type'],
  ['service as a number', entry('"service":7'), '/service wrong_type'],
  ['url as an object', entry('"url":{"href":"x"}'), '/url wrong_type'],
  ['pathname as true', entry('"pathname":true'), '/pathname wrong_type'],
  ['stack as an array of lines', entry('"stack":["a","b"]'), '/stack wrong_type'],
  ['timestamp as seconds', entry('"timestamp":1795214581'), '/timestamp wrong_type'],
]

const wrongValues: readonly BadEntry[] = [
  ['no level', '{"message":"m"}', ' missing'],
  ['no message', '{"level":"info"}', ' missing'],
  ['no fields', '{}', ' missing'],
  ['fields in another case', '{"Level":"info","Message":"m"}', ' missing'],
  ['fields in __proto__', '{"__proto__":{"level":"info","message":"m"}}', ' missing'],
  ['fields in constructor', '{"constructor":{"level":"info","message":"m"}}', ' missing'],
  ['fields in a nested entry', '{"entry":{"level":"info","message":"m"}}', ' missing'],
  ['an unknown level', '{"level":"fatal","message":"m"}', '/level not_allowed'],
  ['a level in upper case', '{"level":"INFO","message":"m"}', '/level not_allowed'],
  ['an empty level', '{"level":"","message":"m"}', '/level not_allowed'],
  ['the level __proto__', '{"level":"__proto__","message":"m"}', '/level not_allowed'],
  [
    'a level with an invalid last duplicate',
    '{"level":"info","level":"x","message":"m"}',
    '/level not_allowed',
  ],
  ['an unknown environment', entry('"environment":"prod"'), '/environment not_allowed'],
  ['an empty environment', entry('"environment":""'), '/environment not_allowed'],
  ['an unknown source', entry('"source":"browser"'), '/source not_allowed'],
  ['a timestamp without a time', entry('"timestamp":"2026-11-20"'), '/timestamp invalid_timestamp'],
  ['an empty timestamp', entry('"timestamp":""'), '/timestamp invalid_timestamp'],
  ['a timestamp of 1969', entry('"timestamp":"1969-12-31T23:59:59Z"'), '/timestamp invalid_timestamp'],
  ['a timestamp of 2262', entry('"timestamp":"2262-01-01T00:00:00Z"'), '/timestamp invalid_timestamp'],
  ['the 30th of February', entry('"timestamp":"2026-02-30T00:00:00Z"'), '/timestamp invalid_timestamp'],
  [
    'a timestamp in the format of HTTP',
    entry('"timestamp":"Fri, 20 Nov 2026 22:43:01 GMT"'),
    '/timestamp invalid_timestamp',
  ],
]

const overLimits: readonly BadEntry[] = [
  [
    'a long message',
    `{"level":"info","message":${quoted(limits.messageCharactersMax + 1)}}`,
    '/message too_long',
  ],
  ['a long stack', entry(`"stack":${quoted(limits.stackCharactersMax + 1)}`), '/stack too_long'],
  ['a long url', entry(`"url":${quoted(limits.urlCharactersMax + 1)}`), '/url too_long'],
  ['a long pathname', entry(`"pathname":${quoted(limits.pathnameCharactersMax + 1)}`), '/pathname too_long'],
  ['a long service', entry(`"service":${quoted(limits.serviceCharactersMax + 1)}`), '/service too_long'],
  ['large metadata', entry(`"metadata":{"a":${quoted(limits.metadataBytesMax)}}`), '/metadata too_large'],
  ['a large unknown field', entry(`"a":${quoted(limits.metadataBytesMax)}`), ' too_large'],
  ['many names', entry(`"metadata":{${names(limits.metadataNamesMax + 1)}}`), '/metadata too_many_names'],
  ['many unknown fields', entry(names(limits.metadataNamesMax + 1)), ' too_many_names'],
  [
    '17 levels of nesting',
    entry(`"metadata":{"a":${'['.repeat(16)}${']'.repeat(16)}}`),
    '/metadata too_deep',
  ],
  ['100,000 arrays', entry(`"a":${'['.repeat(1e5)}${']'.repeat(1e5)}`), ' too_deep'],
  ['100,000 objects', entry(`"a":${'{"a":'.repeat(1e5)}1${'}'.repeat(1e5)}`), ' too_deep'],
  [
    '100,000 arrays and a number that JavaScript cannot represent',
    entry(`"n":1e400,"a":${'['.repeat(1e5)}${']'.repeat(1e5)}`),
    ' too_deep',
  ],
  [
    '100,000 objects and a number that JavaScript cannot represent',
    entry(`"n":9007199254740993,"a":${'{"a":'.repeat(1e5)}1${'}'.repeat(1e5)}`),
    ' too_deep',
  ],
  ['200,000 objects', entry(`"metadata":{"a":[${'{},'.repeat(2e5)}{}]}`), '/metadata too_large'],
  [
    '200,000 objects in the message',
    `{"level":"info","message":[${'{},'.repeat(2e5)}{}]}`,
    '/message wrong_type',
  ],
  [
    'a message of a million escapes',
    `{"level":"info","message":"${'\\n'.repeat(1_000_000)}"}`,
    '/message too_long',
  ],
  ['a level of a million characters', `{"level":${quoted(1_000_000)},"message":"m"}`, '/level not_allowed'],
  [
    'a timestamp of a million characters',
    entry(`"timestamp":${quoted(1_000_000)}`),
    '/timestamp invalid_timestamp',
  ],
  [
    'an array of 200,000 objects',
    `[${'{},'.repeat(2e5)}{}]`.replace(/^/, '{"metadata":').concat(',"level":"info","message":"m"}'),
    '/metadata wrong_type',
  ],
  ['an integer of a million digits', entry(`"a":${'9'.repeat(1_000_000)}`), ' too_large'],
]

const invalidUnicode: readonly BadEntry[] = [
  ['half a pair in the message', '{"level":"info","message":"\\ud83d"}', '/message invalid_unicode'],
  ['half a pair in the service', entry('"service":"\\udc00"'), '/service invalid_unicode'],
  ['half a pair in the metadata', entry('"metadata":{"a":["\\ud83d"]}'), '/metadata/a/0 invalid_unicode'],
  ['half a pair in a name', entry('"metadata":{"a":{"\\ud83d":1}}'), '/metadata/a invalid_unicode'],
  ['a pair in the wrong order', '{"level":"info","message":"\\ude00\\ud83d"}', '/message invalid_unicode'],
]

export const badEntries: readonly BadEntry[] = [
  ...wrongTypes,
  ...wrongValues,
  ...overLimits,
  ...invalidUnicode,
]
