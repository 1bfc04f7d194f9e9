import type { AssemblerMemory } from '@sluice/log-formats'
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CliError } from '../../errors.ts'
import type { FileIdentity } from './file-identity.ts'
import { takeLock } from './state-lock.ts'

/** A file that is read, and how far its entries were acknowledged. */
export interface Segment {
  identity: FileIdentity
  /** Distinguishes the requests of this file from those of others with the same contents. */
  readonly generation: string
  /** The entries before this byte are acknowledged. */
  offset: number
  /** What the lines before the offset say about those after it. Absent at the beginning of a file, and with `--raw`. */
  memory?: AssemblerMemory | undefined
  /** Where the requests end that were sent and are not acknowledged, in ascending order. */
  ends: number[]
  /** When the file was last written, as far as it was read. Rotated files that were written later were not read. */
  modifiedMs: number
  /** All its entries are acknowledged. It is kept until the next file is known, so that no file in between is forgotten. */
  isEnded: boolean
}

export function newSegment(identity: FileIdentity, offset: number, modifiedMs: number): Segment {
  return { identity, generation: randomUUID(), offset, ends: [], modifiedMs, isEnded: false }
}

const VERSION = 1

interface Contents {
  readonly version: number
  /** By the absolute path. A rotated file stays here until its last entry is acknowledged. */
  readonly files: Record<string, Segment[]>
}

/**
 * Persists how far files were sent. Each write replaces the file as a whole, so that it is never half written. Writes that
 * are requested while another one runs become one.
 */
export class FollowState {
  readonly #path: string
  readonly #files: Map<string, Segment[]>
  /** The last write that was requested. It may be running. */
  #last: Promise<void> = Promise.resolve()
  /** The last write, if it has not begun. */
  #waiting: Promise<void> | undefined

  private constructor(path: string, files: Map<string, Segment[]>) {
    this.#path = path
    this.#files = files
  }

  /** @throws CliError when the file cannot be read, or another process uses it */
  static async open(path: string): Promise<FollowState> {
    await mkdir(dirname(path), { recursive: true }).catch(failure(path))
    await lock(`${path}.lock`, path)
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      return failure(path)(error)
    })
    return new FollowState(path, text === undefined ? new Map() : parse(text, path))
  }

  segmentsOf(file: string): Segment[] {
    const known = this.#files.get(file) ?? []
    this.#files.set(file, known)
    return known
  }

  /** Resolves when the present state is on the disk. @throws CliError */
  save(): Promise<void> {
    if (this.#waiting !== undefined) return this.#waiting
    const begin = (): Promise<void> => {
      this.#waiting = undefined
      return this.#write().catch(failure(this.#path))
    }
    this.#waiting = this.#last.then(begin, begin)
    this.#last = this.#waiting
    return this.#waiting
  }

  async close(): Promise<void> {
    await this.save()
    await rm(`${this.#path}.lock`, { force: true })
  }

  async #write(): Promise<void> {
    const contents: Contents = { version: VERSION, files: Object.fromEntries(this.#files) }
    const temporary = `${this.#path}.tmp`
    await using file = await open(temporary, 'w', 0o600)
    await file.writeFile(JSON.stringify(contents))
    await file.sync()
    await rename(temporary, this.#path)
  }
}

/** The default state of a file: in the user's folder for state, one for each API and file. */
export function defaultStatePath(
  file: string,
  apiUrl: string,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const folder = environment['XDG_STATE_HOME'] || join(environment['HOME'] || homedir(), '.local', 'state')
  const name = createHash('sha256').update(`${apiUrl}\n${file}`).digest('hex').slice(0, 32)
  return join(folder, 'sluice', 'follow', `${name}.json`)
}

function failure(path: string): (error: unknown) => never {
  return (error) => {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CliError(`cannot use the state file ${path}: ${reason}`, { cause: error })
  }
}

function parse(text: string, path: string): Map<string, Segment[]> {
  try {
    const { version, files } = JSON.parse(text) as Contents
    if (version !== VERSION) throw new Error(`version ${String(version)} is unknown`)
    if (!Object.values(files).every((segments) => segments.every(isSegment)))
      throw new Error('the position in a file is malformed')
    return new Map(Object.entries(files))
  } catch (error) {
    throw new CliError(
      `the state file ${path} is damaged; delete it to send the files from their beginning: ${String(error)}`,
      { cause: error },
    )
  }
}

/** The memory is not checked: only the parser of lines knows its contents. */
function isSegment({ identity, generation, offset, ends, modifiedMs, isEnded }: Segment): boolean {
  const { device, inode, headBytes, headHash } = identity
  const areTexts = [device, inode, headHash, generation].every((value) => typeof value === 'string')
  const areCounts = [headBytes, offset, ...ends].every((value) => Number.isSafeInteger(value) && value >= 0)
  return areTexts && areCounts && Number.isFinite(modifiedMs) && typeof isEnded === 'boolean'
}

/** Two processes with the same state would send each entry twice. */
async function lock(path: string, statePath: string): Promise<void> {
  const owner = await takeLock(path).catch(failure(statePath))
  if (owner === undefined) return
  throw new CliError(`process ${owner} follows with the state file ${statePath}; pass another --state`)
}
