import { basename } from 'node:path'
import type { Disk } from '../../src/spool/disk.ts'

export interface ProcessDisk extends Disk {
  /** As kill -9 does: the lock is free, and nothing else happens on the disk. */
  readonly kill: () => void
}

const missing = (path: string): Error => Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' })

/** A disk in memory that several processes share. */
export class MemoryDisk {
  readonly files = new Map<string, Buffer>()
  readonly #alive = new Set<string>()
  #ids = 0

  /** The contents of the files of batches, oldest first. */
  get batches(): string[] {
    return this.paths.map((path) => this.files.get(path)?.toString() ?? '')
  }

  get paths(): string[] {
    return [...this.files.keys()].filter((path) => path.endsWith('.batch')).toSorted()
  }

  /** What one process sees. */
  process(): ProcessDisk {
    let id = ''
    let isKilled = false
    const operation =
      <Arguments extends unknown[], Result>(run: (...values: Arguments) => Result) =>
      async (...values: Arguments): Promise<Result> => {
        // Ends later, as a disk does.
        await Promise.resolve()
        return isKilled ? new Promise<never>(() => undefined) : run(...values)
      }
    const read = (path: string): Buffer => {
      const bytes = this.files.get(path)
      if (bytes === undefined) throw missing(path)
      return bytes
    }
    return {
      write: operation((path, bytes, position) => {
        const old = this.files.get(path) ?? Buffer.alloc(0)
        const rest = old.subarray(position + bytes.length)
        this.files.set(path, Buffer.concat([old.subarray(0, position), bytes, rest]))
      }),
      rename: operation((from, to) => {
        this.files.set(to, read(from))
        if (from !== to) this.files.delete(from)
      }),
      remove: operation((path) => {
        this.files.delete(path)
      }),
      read: operation(read),
      size: operation((path) => read(path).length),
      list: operation(() => [...this.files.keys()].map((path) => basename(path))),
      lock: operation((directory) => {
        id = String((this.#ids += 1)).padStart(8, '0')
        const path = `${directory}/${id}.lock`
        this.#alive.add(id)
        this.files.set(path, Buffer.alloc(0))
        const release = operation(() => {
          this.#alive.delete(id)
          this.files.delete(path)
        })
        return { id, release }
      }),
      isAbandoned: operation((_directory, other) => !this.#alive.has(other)),
      kill: () => {
        isKilled = true
        this.#alive.delete(id)
      },
    }
  }
}

export const full = async (): Promise<never> => {
  throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
}

export const hang = (): Promise<never> => new Promise(() => undefined)
