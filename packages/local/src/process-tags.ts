import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type Role, stopDeadlinesMs, stopStages } from './supervised-process.ts'

/**
 * Every process of a supervisor has its role and its data directory in its environment. A cleanup finds the processes by
 * this tag. A list of process ids could be out of date, miss a process that was started just before its parent was killed,
 * or contain an id that the system has reused for another program.
 */
const TAG = 'SLUICE_LOCAL_PROCESS'

export type TaggedRole = Role | 'watchdog'

export interface TaggedProcess {
  readonly pid: number
  readonly role: TaggedRole
}

const roles: readonly TaggedRole[] = [...stopStages.flat(), 'watchdog']
const POLL_MS = 25
/** The kernel handles SIGKILL at once. The rest is headroom for a busy machine. */
const KILL_DEADLINE_MS = 5_000

/** @param dataDir the real path, without symbolic links */
export function tagEnvironment(role: TaggedRole, dataDir: string): Record<string, string> {
  return { [TAG]: `${role}:${dataDir}` }
}

/** The running processes of a data directory, except this one. */
export function findTagged(dataDir: string): TaggedProcess[] {
  const environments = process.platform === 'linux' ? readEnvironments() : listEnvironments()
  return environments.flatMap(({ pid, has }) => {
    const role = pid === process.pid ? undefined : roles.find((each) => has(`${TAG}=${each}:${dataDir}`))
    return role === undefined ? [] : [{ pid, role }]
  })
}

interface Environment {
  readonly pid: number
  /** @param variable `NAME=value` */
  readonly has: (variable: string) => boolean
}

function readEnvironments(): Environment[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return []
    const text = readIfAllowed(`/proc/${entry}/environ`)
    return [{ pid: Number(entry), has: (variable) => `\0${text}`.includes(`\0${variable}\0`) }]
  })
}

/** Other users' processes cannot be read, and a process may exit at any time. */
function readIfAllowed(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** On systems without /proc, `ps -E` prints the environment after the command. */
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
 * Stops the processes of a data directory in the order of `stopStages`. Processes that do not exit after SIGTERM are killed.
 *
 * @returns how many processes there were
 */
export async function stopTagged(dataDir: string): Promise<number> {
  let count = 0
  for (const stage of stopStages) {
    const find = (): TaggedProcess[] =>
      findTagged(dataDir).filter(({ role }) => stage.some((each) => each === role))
    const found = find()
    count += found.length
    await stopFound(find, Math.max(...stage.map((role) => stopDeadlinesMs[role])))
  }
  return count
}

/** Waits for the watchdog of an earlier run, which may be stopping processes. One that takes too long is killed. */
export async function awaitWatchdogs(dataDir: string): Promise<void> {
  const find = (): TaggedProcess[] => findTagged(dataDir).filter(({ role }) => role === 'watchdog')
  const total = Object.values(stopDeadlinesMs).reduce((sum, ms) => sum + ms, 0)
  if (!(await noneLeft(find, total))) await killFound(find)
}

async function stopFound(find: () => readonly TaggedProcess[], graceMs: number): Promise<void> {
  for (const { pid } of find()) {
    signal(pid, 'SIGTERM')
    // A process suspended by SIGSTOP receives SIGTERM only after SIGCONT.
    signal(pid, 'SIGCONT')
  }
  if (!(await noneLeft(find, graceMs))) await killFound(find)
}

async function killFound(find: () => readonly TaggedProcess[]): Promise<void> {
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
    // The process has exited.
  }
}
