import { expect, it } from 'vitest'
import { faultOfIndexName } from '../../../src/protocols/elasticsearch/index-name.ts'

it.each([
  'filebeat-8.17.0',
  '.ds-logs-generic-default-2026.11.23-000001',
  'logs-nginx.access-default',
  'a',
  '...',
  'größe',
  '日志',
  'x'.repeat(255),
])('%s is the name of an index', (name) => {
  expect(faultOfIndexName(name)).toBeUndefined()
})

it.each([
  ['', 'must not be empty'],
  ['Logs', 'must be lowercase'],
  ['GRÖSSE', 'must be lowercase'],
  ['_all', "must not start with '_', '-', or '+'"],
  ['-a', "must not start with '_', '-', or '+'"],
  ['+a', "must not start with '_', '-', or '+'"],
  ['.', "must not be '.' or '..'"],
  ['..', "must not be '.' or '..'"],
  ['a#b', "must not contain '#'"],
  ['cluster:a', "must not contain ':'"],
  ['a\u{0}b', 'must not contain control characters'],
  ['a\u{7f}', 'must not contain control characters'],
  ['x'.repeat(256), 'index name is too long, (256 > 255)'],
  ['é'.repeat(128), 'index name is too long, (256 > 255)'],
])('%j %s', (name, fault) => {
  expect(faultOfIndexName(name)).toBe(fault)
})

it.each(Array.from(String.raw`\/*?"<>| ,`))('the character %s is not allowed', (character) => {
  expect(faultOfIndexName(`a${character}`)).toContain('must not contain the following characters')
})
