import { execFile } from 'node:child_process'
import { link, mkdir, mkdtemp, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ProcessFolder } from '../../src/spool/process-folder.ts'

const run = promisify(execFile)
const clusterChild = fileURLToPath(new URL('../support/cluster-child.ts', import.meta.url))

let directory = ''
const opened: ProcessFolder[] = []
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spool-'))
})
afterEach(async () => {
  for (const folder of opened.splice(0)) await folder.close()
  await rm(directory, { recursive: true })
})

async function open(): Promise<ProcessFolder> {
  const folder = await ProcessFolder.create(directory)
  opened.push(folder)
  return folder
}

const all = (): boolean => true
const fail = (error: unknown): void => {
  throw error
}

/** What a process leaves that was killed: files, and a socket on which nothing listens. */
async function leaveKilled(...files: string[]): Promise<string> {
  const folder = await ProcessFolder.create(directory)
  for (const file of files) await writeFile(join(folder.path, file), file)
  // Node removes the socket when it closes the server. A process that is killed does not.
  const lock = join(directory, 'lock-of-killed')
  await link(join(folder.path, 'lock'), lock)
  await folder.close()
  const path = join(directory, '00000001')
  await rename(`${folder.path}.left`, path)
  await rename(lock, join(path, 'lock'))
  return path
}

describe('adopts the files', () => {
  test('of a process that was killed, in their order', async () => {
    await leaveKilled('2.batch', '1.batch')
    const folder = await open()
    expect(await folder.adopt(all, fail)).toEqual(['1.batch', '2.batch'])
    expect(await readdir(directory)).toEqual([folder.path.slice(directory.length + 1)])
    expect((await readdir(folder.path)).toSorted()).toEqual(['1.batch', '2.batch', 'lock'])
  })

  test('that a closed client left', async () => {
    const first = await ProcessFolder.create(directory)
    await writeFile(join(first.path, '1.batch'), '')
    await first.close()
    const second = await open()
    expect(await second.adopt(all, fail)).toEqual(['1.batch'])
  })

  test('once, and without errors, if several clients adopt at the same time', async () => {
    const names = Array.from({ length: 60 }, (_, i) => `${i + 10}.batch`)
    for (const name of names) {
      const closed = await ProcessFolder.create(directory)
      await writeFile(join(closed.path, name), '')
      await closed.close()
    }
    const folders = [await open(), await open(), await open(), await open()]
    const adopted = await Promise.all(folders.map((folder) => folder.adopt(all, fail)))
    expect(adopted.flat().toSorted()).toEqual(names)
  })

  test('only while there is room, and leaves the others', async () => {
    const path = await leaveKilled('1.batch', '2.batch')
    const folder = await open()
    let isFirst = true
    expect(await folder.adopt(() => isFirst && !(isFirst = false), fail)).toHaveLength(1)
    expect(await readdir(path)).toHaveLength(2)
    expect(await folder.adopt(all, fail)).toHaveLength(1)
    expect(await readdir(directory)).toHaveLength(1)
  })

  test('once, if several processes start at the same time', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `${i}.batch`)
    await leaveKilled(...names)
    const folders = await Promise.all([open(), open(), open()])
    const adopted = await Promise.all(folders.map((folder) => folder.adopt(all, fail)))
    expect(adopted.flat().toSorted()).toEqual(names.toSorted())
  })
})

describe('does not touch', () => {
  test('the files of a process that lives', async () => {
    const first = await open()
    await writeFile(join(first.path, '1.batch'), '')
    const second = await open()
    expect(await second.adopt(all, fail)).toEqual([])
    expect(await readdir(first.path)).toContain('1.batch')
  })

  test('the files of a worker of node:cluster that is disconnected, and still lives', async () => {
    const { stdout } = await run(process.execPath, [clusterChild, directory])
    expect(stdout).toBe('adopted 0 files\n')
  })

  test('a folder whose lock is about to be created, until it is a minute old', async () => {
    const path = join(directory, '00000002')
    await mkdir(path)
    await writeFile(join(path, '1.batch'), '')
    const folder = await open()
    expect(await folder.adopt(all, fail)).toEqual([])
    const twoMinutesAgo = Date.now() / 1_000 - 120
    await utimes(path, twoMinutesAgo, twoMinutesAgo)
    expect(await folder.adopt(all, fail)).toEqual(['1.batch'])
  })
})

test('a folder that cannot be read is reported once', async () => {
  await writeFile(join(directory, '00000003.left'), '')
  const folder = await open()
  const errors: unknown[] = []
  for (let i = 0; i < 3; i += 1) await folder.adopt(all, (error) => errors.push(error))
  expect(errors).toMatchObject([{ code: 'ENOTDIR' }])
})

test('a connection that the lock cannot accept does not end the application', async () => {
  const listen = vi.spyOn(Server.prototype, 'listen')
  await open()
  const server = listen.mock.contexts[0] as Server
  for (let i = 0; i < 3; i += 1) expect(() => server.emit('error', new Error('accept EMFILE'))).not.toThrow()
})

test('a closed folder without files is removed', async () => {
  const folder = await ProcessFolder.create(join(directory, 'deep', 'er'))
  await folder.close()
  expect(await readdir(join(directory, 'deep', 'er'))).toEqual([])
})

test('a path that is too long for a socket is rejected with a reason', async () => {
  const long = join(directory, 'x'.repeat(120))
  await expect(ProcessFolder.create(long)).rejects.toThrow('too long')
})
