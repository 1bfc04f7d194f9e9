import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { totalmem } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import type { SupervisedProcess } from './supervised-process.ts'
import { makeFolder, type Supervisor } from './supervisor.ts'

export interface RedisOptions {
  readonly port?: number | undefined
  /** Letters, digits, `-` and `_`. Random by default. */
  readonly password?: string | undefined
  /** Of the process, and of its folder for data in the data directory. */
  readonly name?: string | undefined
  readonly lines?: readonly string[]
  /** Redis' `maxmemory`. Default: a quarter of this machine's memory, and at least 256 MiB. */
  readonly memoryBytesMax?: number | undefined
  readonly note?: ((line: string) => void) | undefined
}

const LEAST_MEMORY_BYTES = 256 * 1024 * 1024
/** A local server answers within milliseconds, unless its disk is busy. */
const ANSWER_DEADLINE_MS = 5_000
const READY_ANSWER_DEADLINE_MS = 1_000
const DOWNLOAD_DEADLINE_MS = 180_000
/** Where Debian's package is unpacked if there is no Redis. */
const unpackedRedis = fileURLToPath(new URL('../../../node_modules/.cache/redis', import.meta.url))

/** Starts a Redis on 127.0.0.1 that loses no acknowledged write. It requires a password, which the URL includes. */
export async function startRedis(
  supervisor: Supervisor,
  options: RedisOptions = {},
): Promise<{ process: SupervisedProcess; url: string }> {
  const { name = 'redis', password = randomBytes(18).toString('base64url') } = options
  const folder = join(supervisor.dataDir, name)
  const program = await findRedis(options.note)
  makeFolder(folder)
  const configFile = join(folder, 'redis.conf')
  await stopEarlier(configFile)
  return supervisor.ports.startOn(options.port, async (port) => {
    const url = `redis://:${password}@127.0.0.1:${port}`
    const configuration = `port ${port}\n${configure(folder, password, options)}`
    fs.writeFileSync(configFile, configuration, { mode: 0o600 })
    const isReady = () => redisAnswers(url)
    const spec = { ...program, role: 'redis', name, args: [configFile], cwd: folder, isReady } as const
    const process = await supervisor.start(spec)
    return { process, url }
  })
}

function configure(folder: string, password: string, { memoryBytesMax, lines = [] }: RedisOptions): string {
  // Without a constraint, `constrainedMemory` returns 0, or more than the total memory.
  const machineBytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  // A backlog must leave enough memory for the other programs on this machine.
  const shareBytes = Math.max(LEAST_MEMORY_BYTES, Math.floor(machineBytes / 4))
  return `# Overwritten at each start.
bind 127.0.0.1
protected-mode yes
requirepass ${password}
dir "${folder.replaceAll(/["\\]/g, String.raw`\$&`)}"
# Acknowledged writes are on disk. If a crash cuts off the last write, it was not acknowledged.
appendonly yes
appendfsync always
aof-load-truncated yes
save ""
# A queue must not evict jobs. The API rejects entries before the memory is full.
maxmemory ${memoryBytesMax ?? shareBytes}
maxmemory-policy noeviction
${lines.join('\n')}
`
}

/** Whether a server responds and has loaded its data. The password in the URL ensures that it is the right one. */
export const redisAnswers = (url: string): Promise<boolean> =>
  withRedis(url, (redis) => redis.ping(), READY_ANSWER_DEADLINE_MS).then(
    () => true,
    () => false,
  )

/** Stops a server that outlived an earlier run, because its guard was killed too. Two servers must not append to one file. */
async function stopEarlier(configFile: string): Promise<void> {
  const config = fs.existsSync(configFile) ? fs.readFileSync(configFile, 'utf8') : ''
  const [, port, password] = /^port (\d+)$[^]*^requirepass (\S+)$/m.exec(config) ?? []
  if (port !== undefined)
    await withRedis(`redis://:${password}@127.0.0.1:${port}`, (redis) => redis.shutdown('NOSAVE')).catch(
      () => undefined,
    )
}

/** Calls `use` with a connection to Redis. Rejects if it cannot be opened, or if a reply takes longer than the deadline. */
export async function withRedis<T>(
  url: string,
  use: (redis: RedisConnection) => Promise<T>,
  commandTimeoutMs = ANSWER_DEADLINE_MS,
): Promise<T> {
  const redis = connectRedis(url, { failFast: true, commandTimeoutMs })
  redis.on('error', () => undefined)
  try {
    await once(redis, 'ready', { signal: AbortSignal.timeout(commandTimeoutMs) })
    return await use(redis)
  } finally {
    redis.disconnect()
  }
}

/**
 * Unpacks Debian's package with Redis, and the libraries that this system does not have, into the folder `$0`. Changes nothing
 * else, and needs no root. The checker is the server's program: in Debian's package redis-server, the server is the same link.
 */
const UNPACK = `set -e
mkdir -p "$0/lists/partial" "$0/archives/partial"
apt() {
  apt-get -qq -o Dir::State::Lists="$0/lists" -o Dir::Cache="$0" -o APT::Sandbox::User= -o Debug::NoLocking=true "$@"
}
apt update
apt install --download-only --reinstall --yes --no-install-recommends redis-tools
for package in "$0"/archives/*.deb; do dpkg-deb --extract "$package" "$0"; done
ln -s redis-check-rdb "$0/usr/bin/redis-server"
rm -rf "$0/lists" "$0/archives"`

export async function findRedis(note?: (line: string) => void) {
  const folders = (process.env['PATH'] ?? '/usr/bin').split(delimiter)
  const programs = folders.flatMap((path) => [join(path, 'redis-server'), join(path, 'valkey-server')])
  const command = programs.find((program) => fs.existsSync(program))
  if (command !== undefined) return { command, environment: {} }
  if (!fs.existsSync(unpackedRedis)) {
    note?.("Downloading Redis from Debian's packages …")
    await unpack()
  }
  const libraries = fs.globSync(join(unpackedRedis, '{usr/lib,lib}/*-linux-gnu'))
  const environment = { LD_LIBRARY_PATH: libraries.join(':') }
  return { command: join(unpackedRedis, 'usr/bin/redis-server'), environment }
}

async function unpack(): Promise<void> {
  fs.mkdirSync(dirname(unpackedRedis), { recursive: true })
  const folder = fs.mkdtempSync(`${unpackedRedis}-`)
  try {
    await promisify(execFile)('/bin/sh', ['-c', UNPACK, folder], { timeout: DOWNLOAD_DEADLINE_MS })
    if (!fs.existsSync(unpackedRedis)) fs.renameSync(folder, unpackedRedis)
  } catch (error) {
    throw new Error(`Redis is not installed, and its download failed: ${String(error)}`, { cause: error })
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}
