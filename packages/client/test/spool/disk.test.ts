import { execFile } from 'node:child_process'
import { link, mkdtemp, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Lock, systemDisk } from '../../src/spool/disk.ts'

const run = promisify(execFile)
const clusterChild = fileURLToPath(new URL('../support/cluster-child.ts', import.meta.url))
const disk = systemDisk(false)

let directory = ''
const locks: Lock[] = []
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spool-'))
})
afterEach(async () => {
  for (const lock of locks.splice(0)) await lock.release()
  await rm(directory, { recursive: true })
})

async function createLock(path = directory): Promise<Lock> {
  const created = await disk.lock(path)
  locks.push(created)
  return created
}

describe('a lock', () => {
  test('is held until it is released, and leaves nothing then', async () => {
    const held = await createLock(join(directory, 'deep', 'er'))
    expect(await disk.isAbandoned(join(directory, 'deep', 'er'), held.id)).toBe(false)
    await held.release()
    locks.length = 0
    expect(await disk.isAbandoned(join(directory, 'deep', 'er'), held.id)).toBe(true)
    expect(await readdir(join(directory, 'deep', 'er'))).toEqual([])
  })

  test('of a process that was killed is abandoned: its socket exists, and nothing listens on it', async () => {
    const held = await createLock()
    // Node removes the socket when it closes the server. A process that is killed does not.
    const socket = join(directory, 'socket')
    await link(join(directory, `${held.id}.lock`), socket)
    await held.release()
    locks.length = 0
    await rename(socket, join(directory, `${held.id}.lock`))
    expect(await disk.isAbandoned(directory, held.id)).toBe(true)
  })

  test('of a worker of node:cluster that is disconnected, and still lives, is held', async () => {
    const { stdout } = await run(process.execPath, [clusterChild, directory])
    expect(stdout).toBe('abandoned: false\n')
  })

  test('that cannot accept a connection does not end the application', async () => {
    const listen = vi.spyOn(Server.prototype, 'listen')
    await createLock()
    const server = listen.mock.contexts[0] as Server
    for (let i = 0; i < 3; i += 1)
      expect(() => server.emit('error', new Error('accept EMFILE'))).not.toThrow()
  })

  test('with a path that is too long for a socket is rejected with a reason', async () => {
    await expect(disk.lock(join(directory, 'x'.repeat(120)))).rejects.toThrow('too long')
    expect(await readdir(directory)).toEqual([])
  })
})

test('files are only readable by their owner, and removed without an error if they do not exist', async () => {
  const path = join(directory, 'file')
  await disk.write(path, Buffer.from('1'), 0)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  for (let i = 0; i < 2; i += 1) await disk.remove(path)
})

test('fsync waits for the disk, of the file and of a new name', async () => {
  // The effect needs a power cut. The test counts the calls.
  const probe = await open(join(directory, 'probe'), 'w')
  const prototype = Object.getPrototypeOf(probe) as Record<'datasync' | 'sync', () => Promise<void>>
  await probe.close()
  const calls: string[] = []
  for (const name of ['datasync', 'sync'] as const) {
    const original = prototype[name]
    vi.spyOn(prototype, name).mockImplementation(function (this: unknown) {
      calls.push(name)
      return original.call(this)
    })
  }
  await writeFile(join(directory, 'old'), '')
  for (const fsync of [false, true]) {
    const synced = systemDisk(fsync)
    const path = join(directory, String(fsync))
    await synced.write(path, Buffer.from('12'), 0)
    await synced.write(path, Buffer.from('3'), 1)
    expect(await readFile(path, 'utf8')).toBe('13')
    await synced.rename(path, `${path}.marked`)
  }
  expect(calls).toEqual(['datasync', 'sync', 'datasync', 'sync'])
})
