import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The environment in which Docker's client finds its engine and its configuration. */
export const dockerEnvironment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin',
  HOME: homedir(),
}

const COMMAND_DEADLINE_MS = 10_000
/** An image of about 50 MB over a slow connection. */
const PULL_DEADLINE_MS = 300_000

/** Runs a command of Docker's client. */
export async function docker(args: readonly string[], deadlineMs = COMMAND_DEADLINE_MS): Promise<string> {
  const { stdout } = await run('docker', args, { env: dockerEnvironment, timeout: deadlineMs })
  return stdout.trim()
}

/** Whether a Docker engine answers. A client alone is not enough. */
export async function dockerAnswers(): Promise<boolean> {
  return docker(['version', '--format', '{{.Server.Version}}']).then(
    () => true,
    () => false,
  )
}

/** Pulls an image unless it is present. */
export async function ensureImage(image: string, log: (line: string) => void): Promise<void> {
  try {
    await docker(['image', 'inspect', image])
  } catch {
    log(`Pulling the container image ${image} …`)
    await docker(['pull', '--quiet', image], PULL_DEADLINE_MS)
  }
}

/**
 * The file with the name of a data directory's container. A container outlives the client that started it. If the client
 * was killed, the container is found by this name.
 */
export function containerFile(dataDir: string): string {
  return join(dataDir, 'redis', 'container')
}

/** Removes the container of a data directory, if it has one. */
export async function removeContainer(dataDir: string): Promise<void> {
  const file = containerFile(dataDir)
  if (!existsSync(file)) return
  await docker(['rm', '--force', readFileSync(file, 'utf8').trim()]).catch(() => undefined)
  rmSync(file, { force: true })
}
