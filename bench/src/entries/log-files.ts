import { open, readdir } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import type { Random } from './random.ts'
import type { Told } from './templates.ts'

/** Of each file only the start is read: a benchmark needs some ten thousand lines, not all of them. */
const bytesPerFileMax = 16 * 1024 * 1024
/** As many as there are distinct entries in the largest pool of requests. */
const linesPerFileMax = 200_000
/** Longer lines are cut: a dump in a log would make the figures those of the dump. */
const lineCharactersMax = 4_096

interface LogFile {
  readonly service: string
  readonly lines: readonly [string, ...string[]]
}

/**
 * Reads a folder of log files: one line is one message, the file's name its service.
 *
 * @returns what tells the entries: the lines of each file in order, the files in turn by chance
 * @throws when the folder holds no lines
 */
export async function tellFromLogFiles(folder: string): Promise<(random: Random) => Told> {
  const files: LogFile[] = []
  for (const name of await listLogs(folder)) {
    const [first, ...others] = await readLines(join(folder, name))
    if (first === undefined) continue
    files.push({ service: basename(name, extname(name)), lines: [first, ...others] })
  }
  const [first, ...others] = files
  if (first === undefined) throw new Error(`there are no log lines in ${folder}`)
  const all: readonly [LogFile, ...LogFile[]] = [first, ...others]
  const positions = new Map<LogFile, number>()
  return (random) => {
    const file = random.pick(all)
    const position = positions.get(file) ?? 0
    positions.set(file, position + 1)
    const message = file.lines[position % file.lines.length] ?? file.lines[0]
    return { level: levelOf(message), message, service: file.service }
  }
}

/** The names of the files that say that they are logs; of all files where none does. */
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

function levelOf(line: string): Told['level'] {
  if (/\b(?:error|fatal|critical|severe)\b/i.test(line)) return 'error'
  if (/\bwarn(?:ing)?\b/i.test(line)) return 'warn'
  return /\bdebug\b/i.test(line) ? 'debug' : 'info'
}
