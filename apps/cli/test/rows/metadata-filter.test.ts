import { InvalidArgumentError } from 'commander'
import { expect, test } from 'vitest'
import { metadataFilterLimits, parseMetadataFilter } from '../../src/rows/metadata-filter.ts'

test.each([
  ['user.id=42', [['user', 'id'], ['user.id']], '42', false],
  ['id="42"', [['id']], '42', true],
  ['id="42', [['id']], '"42', false],
  ['id=', [['id']], '', false],
  ['id=a=b\nc', [['id']], 'a=b\nc', false],
  [String.raw`a."b \" = c".d=x`, [['a', 'b " = c', 'd']], 'x', false],
  ['ключ.__proto__=x', [['ключ', '__proto__'], ['ключ.__proto__']], 'x', false],
])('metadata.%s', (text, paths, value, isString) => {
  expect(parseMetadataFilter(`metadata.${text}`)).toEqual([{ paths, value, isString }])
})

const invalid =
  '|metadata|metadata=1|metadata.=1|metadata.a|metadata.a.=1|metadata..a=1|metadata.a b=1|metadata.a!=1|' +
  'metadata.a>=1|metadata.a~=1|user.id=42|xmetadata.a=1|metadata."a=1|metadata."\\x"=1'
test.each([
  ...invalid.split('|'),
  `metadata.${'a.'.repeat(metadataFilterLimits.namesMax)}a=1`,
  `metadata.a=${'x'.repeat(metadataFilterLimits.charactersMax)}`,
])('rejects %j', (text) => {
  expect(() => parseMetadataFilter(text)).toThrow(InvalidArgumentError)
})
