import { execFile } from 'node:child_process'
import { homedir } from 'node:os'
import { promisify } from 'node:util'

export const dockerEnvironment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin',
  HOME: homedir(),
}

const COMMAND_DEADLINE_MS = 10_000

export async function docker(args: readonly string[], deadlineMs = COMMAND_DEADLINE_MS): Promise<string> {
  const { stdout } = await promisify(execFile)('docker', args, {
    env: dockerEnvironment,
    timeout: deadlineMs,
  })
  return stdout.trim()
}
