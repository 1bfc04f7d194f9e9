import { randomBytes } from 'node:crypto'
import {
  clickhouseAnswers,
  redisAnswers,
  type ProcessSpec,
  type Services,
  type SupervisedProcess,
  Supervisor,
} from '@sluice/local'
import { GenericContainer, type StartedTestContainer } from 'testcontainers'
import { docker, dockerEnvironment } from './docker.ts'
import type { TestServicesOptions } from './test-installation.ts'

/** The images that docker-compose.yml names. */
export const officialImages = {
  redis: 'redis:8-bookworm',
  clickhouse: 'clickhouse/clickhouse-server:26.8',
} as const

/** The same limit as in docker-compose.yml. */
const MEMORY_BYTES_MAX = 1024 * 1024 * 1024
/** ClickHouse's official image takes some seconds on a busy machine. */
const READY_DEADLINE_MS = 60_000
/** `docker start --attach` does not attach to a container that is already running. */
const RUN_ATTACHED = 'docker start "$0" >/dev/null && exec docker attach --no-stdin --sig-proxy=false "$0"'

export function redisContainer(
  password: string,
  memoryBytesMax: number = MEMORY_BYTES_MAX,
): GenericContainer {
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '']
  const bounded = ['--maxmemory', String(memoryBytesMax), '--maxmemory-policy', 'noeviction']
  const command = ['redis-server', ...durable, ...bounded, '--requirepass', password]
  return new GenericContainer(officialImages.redis).withCommand(command)
}

/** ClickHouse with one user, `sluice`. The ClickHouse module of Testcontainers is not used: it requires more open files than some engines allow. */
export function clickhouseContainer(password: string): GenericContainer {
  return new GenericContainer(officialImages.clickhouse).withEnvironment({
    CLICKHOUSE_USER: 'sluice',
    CLICKHOUSE_PASSWORD: password,
  })
}

/**
 * Redis and ClickHouse as containers of their official images, instead of the processes of `startServices`: empty, with random passwords, and deleted
 * with their data by `stop`.
 */
export async function startContainerServices(options: TestServicesOptions = {}): Promise<Services> {
  const supervisor = new Supervisor(options)
  const containers: StartedTestContainer[] = []
  const stop: Services['stop'] = async (how) => {
    await supervisor.stop(how)
    await Promise.all(containers.map((container) => container.stop()))
  }
  const run = async (
    role: 'redis' | 'clickhouse',
    container: GenericContainer,
    ports: { inside: number; outside: number },
    isReady: ProcessSpec['isReady'],
  ): Promise<SupervisedProcess> => {
    // A port chosen by Docker would change with every start.
    const published = { container: ports.inside, host: ports.outside }
    const started = await container.withExposedPorts(published).start()
    containers.push(started)
    return supervise(supervisor, started, role, isReady)
  }
  try {
    const [redisPort, clickhousePort] = await Promise.all([supervisor.ports.free(), supervisor.ports.free()])
    const password = randomBytes(18).toString('hex')
    const redisUrl = `redis://:${password}@127.0.0.1:${redisPort}`
    const url = `http://127.0.0.1:${clickhousePort}`
    const clickhouse = { url, username: 'sluice', password, database: 'sluice' }
    const redis = await run(
      'redis',
      redisContainer(password, options.redis?.memoryBytesMax),
      { inside: 6379, outside: redisPort },
      () => redisAnswers(redisUrl),
    )
    const clickhouseProcess = await run(
      'clickhouse',
      clickhouseContainer(password),
      { inside: 8123, outside: clickhousePort },
      (signal) => clickhouseAnswers(clickhouse, signal),
    )
    const processes = { redis, clickhouse: clickhouseProcess }
    return { supervisor, dataDir: supervisor.dataDir, redisUrl, clickhouse, processes, stop }
  } catch (error) {
    await stop({ force: true })
    throw error
  }
}

/**
 * Supervises a container like a process, which can be sent any signal and started again. The process on this machine is Docker's client: it is
 * attached to the container, and exits with it.
 */
async function supervise(
  supervisor: Supervisor,
  container: StartedTestContainer,
  role: 'redis' | 'clickhouse',
  isReady: ProcessSpec['isReady'],
): Promise<SupervisedProcess> {
  const id = container.getId()
  return supervisor.start({
    role,
    name: role,
    command: '/bin/sh',
    args: ['-c', RUN_ATTACHED, id],
    cwd: supervisor.dataDir,
    environment: dockerEnvironment,
    readyDeadlineMs: READY_DEADLINE_MS,
    isReady,
    sendSignal: (signal) => {
      // Fails when the container has already exited.
      docker(['kill', '--signal', signal, id]).catch(() => undefined)
    },
  })
}
