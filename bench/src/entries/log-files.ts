import { open, readdir } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { pick } from '@sluice/harness/random'
import type { ContentSource, EntryContent } from './templates.ts'

/** Only the start of each file is read, because a benchmark needs some ten thousand lines only. */
const bytesPerFileMax = 16 * 1024 * 1024
/** More than the distinct entries of a request pool. */
const linesPerFileMax = 200_000
/** Longer lines are truncated, because a dump in a log would dominate the figures. */
const lineCharactersMax = 4_096

interface LogFile {
  readonly service: string
  readonly lines: readonly [string, ...string[]]
}

/**
 * Reads a folder of log files: each line is a message, and the file name is the service.
 *
 * @returns a source that picks a file at random and returns its next line
 * @throws when the folder contains no lines
 */
export async function contentFromLogFiles(folder: string): Promise<ContentSource> {
  const files: LogFile[] = []
  for (const name of await listLogs(folder)) {
    const [first, ...others] = await readLines(join(folder, name))
    if (first === undefined) continue
    files.push({ service: basename(name, extname(name)), lines: [first, ...others] })
  }
  if (files.length === 0) throw new Error(`${folder} contains no log lines`)
  const positions = new Map<LogFile, number>()
  return (random) => {
    const file = pick(random, files)
    const position = positions.get(file) ?? 0
    positions.set(file, position + 1)
    const message = file.lines[position % file.lines.length] ?? file.lines[0]
    return { level: levelOf(message), message, service: file.service }
  }
}

/** The names of all `.log` files in the folder; of all files if there are no `.log` files. */
async function listLogs(folder: string): Promise<string[]> {
  const found = await readdir(folder, { withFileTypes: true })
  const names = found
    .filter((each) => each.isFile())
    .map(({ name }) => name)
    .toSorted()
  const logs = names.filter((name) => name.endsWith('.log'))
  return logs.length > 0 ? logs : names
}

async function readLines(path: string): Promise<string[]> {
  const file = await open(path)
  try {
    const buffer = Buffer.alloc(Math.min(bytesPerFileMax, (await file.stat()).size))
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
    const lines = buffer.subarray(0, bytesRead).toString().split(/\r?\n/)
    return lines
      .filter((line) => line.trim() !== '')
      .slice(0, linesPerFileMax)
      .map((line) => line.slice(0, lineCharactersMax).toWellFormed())
  } finally {
    await file.close()
  }
}

function levelOf(line: string): EntryContent['level'] {
  if (/\b(?:error|fatal|critical|severe)\b/i.test(line)) return 'error'
  if (/\bwarn(?:ing)?\b/i.test(line)) return 'warn'
  return /\bdebug\b/i.test(line) ? 'debug' : 'info'
}
