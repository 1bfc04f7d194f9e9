import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { boundLog, lastLines } from '../src/log-file.ts'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-log-file-'))
  path = join(folder, 'api.log')
})
afterEach(() => rmSync(folder, { recursive: true }))

test('a log below its limit does not change', () => {
  writeFileSync(path, 'abc')
  boundLog(path, 4)
  expect(readFileSync(path, 'utf8')).toBe('abc')
})

test('a log at its limit is copied and truncated', () => {
  appendFileSync(path, 'abcd')
  boundLog(path, 4)
  appendFileSync(path, 'e')
  expect(readFileSync(path, 'utf8')).toBe('e')
  expect(readFileSync(`${path}.1`, 'utf8')).toBe('abcd')
})

test('a missing log is ignored', () => {
  expect(() => boundLog(path, 4)).not.toThrow()
})

test('blank lines are not among the last lines of a log', () => {
  writeFileSync(path, 'one\ntwo\n\nthree\n')
  expect(lastLines(path, 2)).toEqual(['two', 'three'])
})

test('the last lines of a large log are read from its end', () => {
  writeFileSync(path, `${'x'.repeat(100_000)}\nlast\n`)
  expect(lastLines(path, 1)).toEqual(['last'])
})

test('a missing log has no lines', () => {
  expect(lastLines(path, 2)).toEqual([])
})
