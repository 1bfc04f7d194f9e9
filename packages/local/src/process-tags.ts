import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type Role, stopDeadlinesMs, stopStages } from './roles.ts'

/**
 * Every process that is started here carries its role and its data directory in its environment. So whoever cleans up
 * finds the processes themselves: there is no list that could be out of date, miss a process that was started a moment
 * before its parent was killed, or name a process id that has gone to another program.
 */
const TAG = 'SLUICE_LOCAL_PROCESS'

export type TaggedRole = Role | 'watchdog'

export interface TaggedProcess {
  readonly pid: number
  readonly role: TaggedRole
}

const roles: readonly TaggedRole[] = [...stopStages.flat(), 'watchdog']
const POLL_MS = 25
/** SIGKILL needs only the kernel, so this is headroom for a machine that is busy. */
const KILL_DEADLINE_MS = 5_000

/** @param dataDir the real path, without symbolic links */
export function tagEnvironment(role: TaggedRole, dataDir: string): Record<string, string> {
  return { [TAG]: `${role}:${dataDir}` }
}

/** The processes of a data directory that are alive, this one left out. */
export function findTagged(dataDir: string): TaggedProcess[] {
  const environments = process.platform === 'linux' ? readEnvironments() : listEnvironments()
  return environments.flatMap(({ pid, has }) => {
    const role = pid === process.pid ? undefined : roles.find((each) => has(`${TAG}=${each}:${dataDir}`))
    return role === undefined ? [] : [{ pid, role }]
  })
}

interface Environment {
  readonly pid: number
  /** Whether a variable has a value, written `NAME=value`. */
  readonly has: (variable: string) => boolean
}

function readEnvironments(): Environment[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return []
    const text = readIfAllowed(`/proc/${entry}/environ`)
    return [{ pid: Number(entry), has: (variable) => `\0${text}`.includes(`\0${variable}\0`) }]
  })
}

/** The processes of others cannot be read, and one may end while it is looked at. */
function readIfAllowed(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Where there is no /proc, `ps -E` writes the environment behind the command. */
function listEnvironments(): Environment[] {
  const lines = execFileSync('ps', ['-A', '-E', '-ww', '-o', 'pid=,command='], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  }).split('\n')
  return lines.map((line) => ({
    pid: Number.parseInt(line, 10),
    has: (variable) => `${line} `.includes(` ${variable} `),
  }))
}

/**
 * Ends the processes of a data directory in their order, each stage with SIGTERM first.
 *
 * @returns how many there were
 */
export async function endTagged(dataDir: string): Promise<number> {
  let count = 0
  for (const stage of stopStages) {
    const find = (): TaggedProcess[] =>
      findTagged(dataDir).filter(({ role }) => stage.some((each) => each === role))
    const found = find()
    count += found.length
    await endThese(find, Math.max(...stage.map((role) => stopDeadlinesMs[role])))
  }
  return count
}

/** Waits for the watchdog of a run that is over, which may be ending processes. One that takes too long is killed. */
export async function awaitWatchdogs(dataDir: string): Promise<void> {
  const find = (): TaggedProcess[] => findTagged(dataDir).filter(({ role }) => role === 'watchdog')
  const total = Object.values(stopDeadlinesMs).reduce((sum, ms) => sum + ms, 0)
  if (!(await noneLeft(find, total))) await killThese(find)
}

async function endThese(find: () => readonly TaggedProcess[], graceMs: number): Promise<void> {
  for (const { pid } of find()) {
    signal(pid, 'SIGTERM')
    // A stopped process gets its SIGTERM only once it runs again.
    signal(pid, 'SIGCONT')
  }
  if (!(await noneLeft(find, graceMs))) await killThese(find)
}

async function killThese(find: () => readonly TaggedProcess[]): Promise<void> {
  for (const { pid } of find()) signal(pid, 'SIGKILL')
  await noneLeft(find, KILL_DEADLINE_MS)
}

async function noneLeft(find: () => readonly TaggedProcess[], deadlineMs: number): Promise<boolean> {
  for (let waitedMs = 0; find().length > 0; waitedMs += POLL_MS) {
    if (waitedMs >= deadlineMs) return false
    await delay(POLL_MS)
  }
  return true
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended meanwhile.
  }
}
