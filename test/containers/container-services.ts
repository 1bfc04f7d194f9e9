import { randomBytes } from 'node:crypto'
import {
  askClickHouseVersion,
  askRedisVersion,
  docker,
  dockerEnvironment,
  freePort,
  type ProcessSpec,
  type Services,
  type SupervisedProcess,
  Supervisor,
} from '@sluice/local'
import type { GenericContainer, StartedTestContainer } from 'testcontainers'
import type { TestServicesOptions } from '../test-services.ts'
import { clickhouseContainer, redisContainer } from './official-images.ts'

/** ClickHouse's own image takes some seconds on a busy machine. */
const READY_DEADLINE_MS = 60_000
/** Not `docker start --attach`, which does not attach to a container that runs already. */
const RUN_ATTACHED = 'docker start "$0" >/dev/null && exec docker attach --no-stdin --sig-proxy=false "$0"'

/**
 * Redis and ClickHouse as containers of their official images, in place of those that `startServices` starts: empty, with
 * random passwords, and gone with their data at the end.
 */
export async function startContainerServices(options: TestServicesOptions = {}): Promise<Services> {
  const supervisor = await Supervisor.open(options)
  const containers: StartedTestContainer[] = []
  const stop: Services['stop'] = async (how) => {
    await supervisor.stop(how)
    await Promise.all(containers.map((container) => container.stop()))
  }
  const run = async (
    container: GenericContainer,
    ports: { inside: number; outside: number },
    server: Pick<ProcessSpec, 'role' | 'isReady'>,
  ): Promise<SupervisedProcess> => {
    // A port that Docker chose itself would be another one after each start.
    const published = { container: ports.inside, host: ports.outside }
    const started = await container.withExposedPorts(published).start()
    containers.push(started)
    return supervise(supervisor, started, server)
  }
  try {
    const [redisPort, clickhousePort] = await Promise.all([freePort(), freePort()])
    const password = randomBytes(18).toString('hex')
    const redisUrl = `redis://:${password}@127.0.0.1:${redisPort}`
    const url = `http://127.0.0.1:${clickhousePort}`
    const clickhouse = { url, username: 'sluice', password, database: 'sluice' }
    const redisProcess = await run(
      redisContainer(password, options.redis?.memoryBytesMax),
      { inside: 6379, outside: redisPort },
      { role: 'redis', isReady: async () => (await askRedisVersion(redisUrl)) !== undefined },
    )
    const clickhouseProcess = await run(
      clickhouseContainer(password),
      { inside: 8123, outside: clickhousePort },
      {
        role: 'clickhouse',
        isReady: async (signal) => (await askClickHouseVersion(clickhouse, signal)) !== undefined,
      },
    )
    const processes = { redis: redisProcess, clickhouse: clickhouseProcess }
    return { supervisor, dataDir: supervisor.dataDir, redisUrl, clickhouse, processes, stop }
  } catch (error) {
    await stop({ force: true })
    throw error
  }
}

/**
 * A container as a process that can be ended by any signal and started again: what runs here is Docker's client, attached
 * to it, which ends when the container does.
 */
async function supervise(
  supervisor: Supervisor,
  container: StartedTestContainer,
  { role, isReady }: Pick<ProcessSpec, 'role' | 'isReady'>,
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
      // One that has ended gets no signal.
      docker(['kill', '--signal', signal, id]).catch(() => undefined)
    },
  })
}
