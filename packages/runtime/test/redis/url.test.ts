import { expect, it } from 'vitest'
import { parseRedisUrl } from '../../src/redis/url.ts'
import { SettingsError } from '../../src/settings.ts'

const node = (host: string, port: number): object => ({ host, port })

it.each([
  ['redis://cache', { kind: 'single', tls: false, nodes: [node('cache', 6379)], db: 0 }],
  ['rediss://cache:6380/3', { kind: 'single', tls: true, nodes: [node('cache', 6380)], db: 3 }],
  ['redis://[::1]:7000/', { kind: 'single', tls: false, nodes: [node('::1', 7000)], db: 0 }],
  [
    'redis-sentinel://a,b:26380/logs',
    { masterName: 'logs', nodes: [node('a', 26_379), node('b', 26_380)], db: 0 },
  ],
  ['rediss-sentinel://a/my%20master/2', { kind: 'sentinel', tls: true, masterName: 'my master', db: 2 }],
  ['redis-cluster://10.0.0.1:7000,b', { kind: 'cluster', nodes: [node('10.0.0.1', 7000), node('b', 6379)] }],
  ['redis://sluice:p%40s%2Fs%25@cache', { username: 'sluice', password: 'p@s/s%' }],
])('reads the Redis URL %s', (url, address) => {
  expect(parseRedisUrl(url)).toMatchObject(address)
})

it.each([
  'https://:secret@cache',
  'redis://:secret@',
  'redis://:secret@cache:99999',
  'redis://:secret@one,two',
  'redis://:secret@cache/logs',
  'redis://:secret@cache?family=6',
  'redis://:se@cret@cache',
  'redis://:se%cret@cache',
  'redis://secret@cache',
  'redis-sentinel://:secret@cache',
  'redis-sentinel://:secret@cache/my/1/more',
  'redis-cluster://:secret@one/1',
])('rejects the Redis URL %s with the forms that exist, and never quotes the URL', (url) => {
  const parse = (): unknown => parseRedisUrl(url)
  expect(parse).toThrow(SettingsError)
  expect(parse).toThrow('redis-cluster://HOST')
  expect(parse).not.toThrow(/cret|cache/)
})
