import { linkSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long a process that found a lock left behind waits for others that found it too. They need a few system calls. */
const SETTLE_MS = 50

/**
 * Takes a lock file. A process that was killed leaves its lock behind: the next one replaces it. Several processes that find it at once
 * end with one owner.
 *
 * @returns the process that has the lock; undefined if this one has it now
 */
export async function takeLock(path: string): Promise<number | undefined> {
  const own = `${process.pid} ${await startOf(process.pid)}`
  let wasLeftBehind = false
  for (;;) {
    if (await create(path, own)) {
      if (!wasLeftBehind) return undefined
      await sleep(SETTLE_MS)
    }
    const owner = await readFile(path, 'utf8').catch(() => undefined)
    if (owner === own && wasLeftBehind) return undefined
    if (owner === undefined) continue
    const running = await runningOwner(owner)
    if (running !== undefined) return running
    wasLeftBehind = true
    removeIfStill(path, owner)
  }
}

/** Creates the file with its contents in one step: no other process sees it without them. @returns false if it exists */
async function create(path: string, contents: string): Promise<boolean> {
  const temporary = `${path}.${process.pid}`
  await writeFile(temporary, contents, { mode: 0o600 })
  try {
    await link(temporary, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  } finally {
    await rm(temporary, { force: true })
  }
}

/**
 * Removes the file, unless another process has replaced it meanwhile. No other work of this process comes between the steps: the time in
 * which another one could replace it is that of a system call.
 */
function removeIfStill(path: string, contents: string): void {
  const aside = `${path}.${process.pid}.old`
  try {
    if (readFileSync(path, 'utf8') !== contents) return
    renameSync(path, aside)
    if (readFileSync(aside, 'utf8') !== contents) linkSync(aside, path)
  } catch {
    // Another process was faster. The next look shows who has the lock.
  }
  rmSync(aside, { force: true })
}

async function runningOwner(contents: string): Promise<number | undefined> {
  const [pid, start = ''] = contents.split(' ')
  const owner = Number(pid)
  // This process did not write it: a process of another container may have had the same id.
  const isOwner = owner > 0 && owner !== process.pid && isRunning(owner)
  return isOwner && (start === '' || start === (await startOf(owner))) ? owner : undefined
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** When a process started, on Linux: distinguishes it from a later one with the same id. */
async function startOf(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name of the program is in parentheses, and may have blanks. The start is the 20th field after it.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}
