import { createHash, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { makeFolder } from './data-folder.ts'
import { containerFile, docker, dockerEnvironment, ensureImage } from './docker.ts'
import { findRedis, type RedisProgram } from './redis-program.ts'
import type { ProcessSpec, SupervisedProcess } from './supervised-process.ts'
import type { Supervisor } from './supervisor.ts'

/** A running Redis server. */
export interface RedisProcess {
  readonly process: SupervisedProcess
  /** Includes the password. */
  readonly url: string
  readonly port: number
  /** Human-readable, for example `Redis 7.0`. */
  readonly version: string
}

export interface RedisOptions {
  /** Used if it is free. Otherwise a free port is chosen. */
  readonly port?: number | undefined
  /** Letters, digits, `-` and `_`. Random by default. */
  readonly password?: string | undefined
  /** The name of the process, and of its folder for data in the data directory. Default: `redis`. */
  readonly name?: string | undefined
  /** The URL of the server whose replica it becomes. Both are programs on this machine. */
  readonly replicaOf?: string | undefined
  /** The folder for the data. */
  readonly folder?: string | undefined
  /** Redis' `maxmemory`. Default: a quarter of this machine's memory, and at least 256 MiB. */
  readonly memoryBytesMax?: number | undefined
  /** Receives a line before each slow step: an installation, an image pull. */
  readonly log?: ((line: string) => void) | undefined
}

const IMAGE = 'redis:8-bookworm'
const PORT_IN_CONTAINER = 6379
/** Redis needs some seconds per gigabyte to read its append-only file. */
const READY_DEADLINE_MS = 60_000
/** Enough for some two million entries, and for the workers to process them. */
const LEAST_MEMORY_BYTES = 256 * 1024 * 1024

/**
 * Starts a Redis that loses no acknowledged write: it is append-only, and syncs to disk before it answers. It listens on
 * 127.0.0.1, and requires a password.
 */
export async function startRedis(supervisor: Supervisor, options: RedisOptions = {}): Promise<RedisProcess> {
  const {
    name = 'redis',
    replicaOf,
    password = replicaOf === undefined ? randomBytes(18).toString('base64url') : new URL(replicaOf).password,
    folder = join(supervisor.dataDir, name),
    memoryBytesMax = shareOfMemoryBytes(),
    log = () => undefined,
  } = options
  if (!/^[\w-]+$/.test(password))
    throw new Error('the Redis password may contain only letters, digits, - and _')
  const program = await findRedis(log)
  makeFolder(folder)
  if (program.kind === 'docker') await ensureImage(IMAGE, log)

  return supervisor.ports.startOn(options.port, async (port) => {
    const url = `redis://:${password}@127.0.0.1:${port}`
    const config =
      program.kind === 'docker'
        ? configuration({
            host: '0.0.0.0',
            port: PORT_IN_CONTAINER,
            folder: '/data',
            password,
            memoryBytesMax,
          })
        : configuration({ host: '127.0.0.1', port, folder, password, memoryBytesMax, replicaOf })
    writeFileSync(join(folder, 'redis.conf'), config, { mode: 0o600 })
    const process = await supervisor.start({
      role: 'redis',
      name,
      cwd: folder,
      readyDeadlineMs: READY_DEADLINE_MS,
      isReady: async () => (await askRedisVersion(url)) !== undefined,
      ...(program.kind === 'docker' ? container(supervisor.dataDir, folder, port) : binary(program, folder)),
    })
    return { process, url, port, version: (await askRedisVersion(url)) ?? 'Redis' }
  })
}

type Command = Pick<ProcessSpec, 'command' | 'args' | 'environment'> &
  Partial<Pick<ProcessSpec, 'argv0' | 'sendSignal'>>

function binary({ command, argv0 }: RedisProgram & { kind: 'binary' }, folder: string): Command {
  return { command, argv0, args: [join(folder, 'redis.conf')], environment: {} }
}

function container(dataDir: string, folder: string, port: number): Command {
  const name = `sluice-redis-${createHash('sha256').update(dataDir).digest('hex').slice(0, 12)}`
  writeFileSync(containerFile(dataDir), name)
  const run = [
    '--rm',
    `--name=${name}`,
    `--user=${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`,
    `--publish=127.0.0.1:${port}:${PORT_IN_CONTAINER}`,
    `--volume=${folder}:/data`,
    IMAGE,
    'redis-server',
    '/data/redis.conf',
  ]
  return {
    command: '/bin/sh',
    // An earlier container of this name may still be stopping.
    args: ['-c', 'docker rm --force "$0" >/dev/null 2>&1; exec docker run "$@"', name, ...run],
    environment: dockerEnvironment,
    // The local process is only Docker's client.
    sendSignal: (signal) => {
      docker(['kill', '--signal', signal, name]).catch(() => undefined)
    },
  }
}

/** A backlog must leave enough memory for the other programs on this machine. */
function shareOfMemoryBytes(): number {
  // Without a constraint, `constrainedMemory` returns 0, or more than the total memory.
  const bytes = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  return Math.max(LEAST_MEMORY_BYTES, Math.floor(bytes / 4))
}

function configuration(options: {
  host: string
  port: number
  folder: string
  password: string
  memoryBytesMax: number
  replicaOf?: string | undefined
}): string {
  const replication =
    options.replicaOf === undefined
      ? ''
      : `replicaof 127.0.0.1 ${new URL(options.replicaOf).port}\nmasterauth ${options.password}\n`
  return `# Overwritten at each start.
bind ${options.host}
port ${options.port}
protected-mode yes
requirepass ${options.password}
dir "${options.folder.replaceAll(/["\\]/g, String.raw`\$&`)}"
# Acknowledged writes are on disk. If a crash cuts off the last write, it was not acknowledged.
appendonly yes
appendfsync always
aof-load-truncated yes
save ""
# A queue must not evict jobs. The API rejects entries before the memory is full.
maxmemory ${options.memoryBytesMax}
maxmemory-policy noeviction
daemonize no
# Setting the process title would overwrite the environment, which identifies the process.
set-proc-title no
${replication}`
}

/** Queries the server's name and version. @returns undefined while it does not answer or is still loading its data */
export async function askRedisVersion(url: string): Promise<string | undefined> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 1_000,
    commandTimeout: 1_000,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  })
  redis.on('error', () => undefined)
  try {
    await redis.connect()
    await redis.ping()
    const info = await redis.info('server')
    const [, valkey] = /^valkey_version:(\d+\.\d+)/m.exec(info) ?? []
    const [, version = '?'] = /^redis_version:(\d+\.\d+)/m.exec(info) ?? []
    return valkey === undefined ? `Redis ${version}` : `Valkey ${valkey}`
  } catch {
    return undefined
  } finally {
    // For a connection that is already closed, ioredis would wait 2 s for the close event.
    if (redis.status !== 'end') redis.disconnect()
  }
}
