import { expect, it } from 'vitest'
import { describeFullDisk } from '../src/local-run.ts'

it.each([
  ['/data', '/data', 5_900_000],
  ['/data/clickhouse', '/data/clickhouse', 0],
  ['/data/redis', '/data/redis', 67_000_000],
])('a full disk below %s is named, with what is free', (full, named, bytes) => {
  const found = describeFullDisk('/data', (folder) => (folder === full ? bytes : 10 ** 9))
  expect(found).toMatch(`The disk of ${named} is full (${Math.floor(bytes / 1e6)} MB free). Free some space`)
})

it('a disk with space is no problem, nor is a folder that does not exist', () => {
  expect(describeFullDisk('/data', () => 10 ** 9)).toBeUndefined()
  for (const folder of ['/no/such/folder', '/proc/x']) expect(describeFullDisk(folder)).toBeUndefined()
})
