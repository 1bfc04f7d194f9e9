import { InvalidArgumentError } from 'commander'
import { describe, expect, test } from 'vitest'
import { metadataFilterLimits, parseMetadataFilter } from '../../src/logs/metadata-filter.ts'

describe('parseMetadataFilter', () => {
  test.each([
    ['metadata.user.id=42', [['user', 'id'], ['user.id']], '42', false],
    ['metadata.id=42', [['id']], '42', false],
    ['metadata.id="42"', [['id']], '42', true],
    ['metadata.id="42', [['id']], '"42', false],
    ['metadata.id=', [['id']], '', false],
    ['metadata.id=a=b\nc', [['id']], 'a=b\nc', false],
    ['metadata."http.status"=500', [['http.status']], '500', false],
    [String.raw`metadata.a."b \" = c".d=x`, [['a', 'b " = c', 'd']], 'x', false],
    ['metadata.ключ.__proto__=x', [['ключ', '__proto__'], ['ключ.__proto__']], 'x', false],
  ])('parses %s', (text, paths, value, isString) => {
    expect(parseMetadataFilter(text)).toEqual([{ paths, value, isString }])
  })

  test.each([
    '',
    'metadata',
    'metadata=1',
    'metadata.=1',
    'metadata.a',
    'metadata.a.=1',
    'metadata..a=1',
    'metadata.a b=1',
    'metadata.a!=1',
    'metadata.a>=1',
    'metadata.a~=1',
    'user.id=42',
    'level=error',
    'xmetadata.a=1',
    'metadata."a=1',
    'metadata."\\x"=1',
    `metadata.${'a.'.repeat(metadataFilterLimits.namesMax)}a=1`,
    `metadata.a=${'x'.repeat(metadataFilterLimits.charactersMax)}`,
  ])('rejects %j', (text) => {
    expect(() => parseMetadataFilter(text)).toThrow(InvalidArgumentError)
  })
})
