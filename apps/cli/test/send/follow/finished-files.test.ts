import { renameSync, writeFileSync } from 'node:fs'
import { type FileHandle, mkdtemp, open, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FinishedFiles } from '../../../src/send/follow/finished-files.ts'

let folder = ''
let path = ''
let finished: FinishedFiles
const { signal } = new AbortController()
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-finished-'))
  path = join(folder, 'app.log')
  finished = new FinishedFiles()
})
afterEach(() => rm(folder, { recursive: true }))

async function finish(name: string): Promise<void> {
  const file = await open(name)
  await finished.add(file)
  await file.close()
}

/** @returns the contents of the unread files */
async function unread(current: FileHandle): Promise<string[]> {
  const contents: string[] = []
  for (const { file } of await finished.openUnread(path, current, signal)) {
    contents.push(await file.readFile('utf8'))
    await file.close()
  }
  return contents
}

test('a file is found even if files are renamed while they are listed', async () => {
  // The files are renamed a little later each time, so that they are between reading the folder and opening a file too.
  for (let turns = 0; turns < 40; turns += 1) {
    await writeFile(`${path}.1`, 'finished')
    await finish(`${path}.1`)
    await writeFile(`${path}.1`, 'unread')
    await writeFile(path, 'current')
    const current = await open(path)
    const found = unread(current)
    for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate)
    renameSync(`${path}.1`, `${path}.2`)
    renameSync(path, `${path}.1`)
    writeFileSync(path, 'next')
    expect(await found).toEqual(['unread'])
    await current.close()
    await rm(`${path}.2`)
  }
})

test('a file that was finished is not found, but another one with its number is', async () => {
  await writeFile(path, 'current')
  const current = await open(path)
  await writeFile(`${path}.1`, 'one')
  await finish(`${path}.1`)
  expect(await unread(current)).toEqual([])
  await writeFile(`${path}.1`, 'two')
  expect(await unread(current)).toEqual(['two'])
  await current.close()
})

test('files are found from the time on at which the finished ones were written, the oldest first', async () => {
  await writeFile(path, 'current')
  const current = await open(path)
  for (const second of [1, 4, 3, 2]) {
    await writeFile(`${path}.${second}`, `${second}`)
    await utimes(`${path}.${second}`, second, second)
  }
  // Which of them were sent before is not known.
  expect(await unread(current)).toEqual([])
  finished.addDeleted(2_000)
  expect(await unread(current)).toEqual(['2', '3', '4'])
  await finish(`${path}.3`)
  expect(await unread(current)).toEqual(['4'])
  await current.close()
})

test('a file that was written at the time of the last one is unread, whatever the fraction of the time is', async () => {
  await writeFile(path, 'current')
  const current = await open(path)
  for (let fraction = 0; fraction < 200; fraction += 1) {
    const seconds = 1_795_481_184 + fraction / 199
    await writeFile(`${path}.1`, 'unread')
    await utimes(`${path}.1`, seconds, seconds)
    finished = new FinishedFiles()
    finished.addDeleted((await stat(`${path}.1`)).mtimeMs)
    expect(await unread(current)).toEqual(['unread'])
  }
  await current.close()
})

const lines = (count: number): string => Array.from({ length: count }, (_, i) => `line ${i}\n`).join('')

describe('a copy of a finished file that a user made', () => {
  let current: FileHandle
  beforeEach(async () => {
    await writeFile(`${path}.1`, lines(100_000))
    await finish(`${path}.1`)
    await writeFile(path, 'current')
    current = await open(path)
  })
  afterEach(() => current.close())

  test('is not found, whenever it was made', async () => {
    await writeFile(`${path}.old`, lines(100_000))
    await writeFile(`${path}.2026-11-20`, lines(90_000))
    expect(await unread(current)).toEqual([])
  })

  test.each([
    ['differs at its end', `${lines(90_000)}other\n`],
    ['is longer', lines(100_001)],
    ['is too short to tell', lines(10)],
  ])('is found as another file if it %s', async (_name, text) => {
    await writeFile(`${path}.old`, text)
    expect(await unread(current)).toEqual([text])
  })

  test('is found if the finished file was compressed, so that they cannot be compared', async () => {
    await rename(`${path}.1`, `${path}.1.gz`)
    await writeFile(`${path}.old`, lines(100_000))
    expect(await unread(current)).toEqual([lines(100_000)])
  })
})
