import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { concernsDataFolder, makeFolder } from '../src/data-folder.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-data-folder-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function errorOf(act: () => void): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

it('creates missing parents, which only their owner can read', () => {
  makeFolder(join(folder, 'a', 'b'))
  for (const path of ['a', 'a/b']) expect(statSync(join(folder, path)).mode & 0o777).toBe(0o700)
})

it('keeps a folder that exists, also behind a symbolic link', () => {
  mkdirSync(join(folder, 'real'), { mode: 0o755 })
  symlinkSync('real', join(folder, 'link'))
  makeFolder(join(folder, 'link'))
  makeFolder(join(folder, 'link', 'child'))
  expect(statSync(join(folder, 'real', 'child')).isDirectory()).toBe(true)
})

it('reports a path that is a file, or below a file', () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  const dataDir = join(file, 'data')
  expect(errorOf(() => makeFolder(file))).toMatchObject({ code: 'EEXIST' })
  const error = errorOf(() => makeFolder(dataDir))
  expect(error).toMatchObject({ code: 'EEXIST', path: file })
  expect(concernsDataFolder(error, dataDir)).toBe(true)
  expect(concernsDataFolder(error, '/elsewhere')).toBe(false)
})

it.runIf(process.platform === 'linux')('reports a file system that allows no folder', () => {
  const error = errorOf(() => makeFolder('/proc/sluice/data'))
  expect(error).toMatchObject({ code: 'ENOENT' })
  expect(concernsDataFolder(error, '/proc/sluice/data')).toBe(true)
})
