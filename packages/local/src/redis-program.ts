import { spawn } from 'node:child_process'
import { dockerAnswers } from './docker.ts'

/** A Redis server on this machine, or a Docker engine that can run one. */
export type RedisProgram =
  | { readonly kind: 'binary'; readonly command: string; readonly argv0: string }
  | { readonly kind: 'docker' }

/** Enough for apt-get over a slow connection. */
const INSTALL_DEADLINE_MS = 180_000
/** A program that does not print its version within this time is no Redis that can be used. */
const CHECK_DEADLINE_MS = 5_000

/**
 * Programs that can run as a Redis server, in the order of preference. The last four are a last resort: the checkers are
 * the server's binary, which decides by argv0 what it does. Debian's package redis-tools contains them, and unlike
 * redis-server it installs no system service that would start by itself.
 */
const candidates = [
  { file: 'redis-server', argv0: 'redis-server' },
  { file: 'valkey-server', argv0: 'valkey-server' },
  { file: 'redis-check-rdb', argv0: 'redis-server' },
  { file: 'redis-check-aof', argv0: 'redis-server' },
  { file: 'valkey-check-rdb', argv0: 'valkey-server' },
  { file: 'valkey-check-aof', argv0: 'valkey-server' },
] as const

const PACKAGE = 'redis-tools'

/**
 * Finds a Redis server: on the PATH, otherwise in a Docker engine, otherwise by installing Debian's package as root.
 *
 * @param log receives a line before each slow step
 * @throws Error that explains what to install
 */
export async function findRedis(log: (line: string) => void): Promise<RedisProgram> {
  const found = await findBinary()
  if (found !== undefined) return found
  if (await dockerAnswers()) return { kind: 'docker' }
  if (process.getuid?.() === 0 && (await which('apt-get')) !== undefined) {
    log(`Installing Redis (apt-get install ${PACKAGE}) …`)
    await install()
    const installed = await findBinary()
    if (installed !== undefined) return installed
  }
  throw new Error(
    'Redis was not found. Install it with `sudo apt-get install redis-tools` (Debian, Ubuntu), `brew install redis` ' +
      '(macOS) or `sudo dnf install valkey` (Fedora), or start a Docker engine.',
  )
}

async function findBinary(): Promise<RedisProgram | undefined> {
  for (const { file, argv0 } of candidates) {
    const command = await which(file)
    if (command !== undefined && (await isServer(command, argv0))) return { kind: 'binary', command, argv0 }
  }
  return undefined
}

async function which(file: string): Promise<string | undefined> {
  const { code, output } = await capture('/bin/sh', ['-c', 'command -v "$0"', file])
  return code === 0 ? output.trim() : undefined
}

async function isServer(command: string, argv0: string): Promise<boolean> {
  const { output } = await capture(command, ['--version'], { argv0 })
  return /server v=/i.test(output)
}

async function install(): Promise<void> {
  const options = ['DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq', '-o', 'DPkg::Lock::Timeout=60']
  // The package lists may be missing, or list packages that the mirror no longer has.
  const run = (args: readonly string[]): Promise<Captured> =>
    capture('env', [...options, ...args], { deadlineMs: INSTALL_DEADLINE_MS })
  const update = await run(['update'])
  const added = await run(['install', '-y', '--no-install-recommends', PACKAGE])
  if (added.code === 0) return
  throw new Error(`apt-get could not install ${PACKAGE}. Its output:\n${update.output}${added.output}`)
}

interface Captured {
  readonly code: number | null
  readonly output: string
}

/** Runs a command with this process's environment, which has the PATH and possibly a proxy for apt-get. */
function capture(
  command: string,
  args: readonly string[],
  { argv0 = command, deadlineMs = CHECK_DEADLINE_MS }: { argv0?: string; deadlineMs?: number } = {},
): Promise<Captured> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      argv0,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: deadlineMs,
    })
    let output = ''
    const collect = (text: string): void => {
      output += text
    }
    child.stdout.setEncoding('utf8').on('data', collect)
    child.stderr.setEncoding('utf8').on('data', collect)
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, output }))
  })
}
