import { Cluster, Redis } from 'ioredis'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createLogger } from '../../src/logger.ts'
import { DurabilityCheck } from '../../src/redis/durability.ts'
import { plainRedis } from '../../src/redis/durable-redis.ts'

/** A server that loses the last second of what it acknowledged. It never connects. */
function unsafeServer(port: number): Redis {
  const server = new Redis({ port, lazyConnect: true })
  const values: Record<string, string> = {
    appendonly: 'yes',
    appendfsync: 'everysec',
    'maxmemory-policy': 'noeviction',
  }
  vi.spyOn(server, 'config').mockImplementation(async (_get, name) => [name, values[String(name)]])
  return server
}

it('forgets what it logged about a server that left the cluster, and logs it again if the server returns', async () => {
  const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true })
  cluster.status = 'ready'
  const [stays, leaves] = [unsafeServer(1), unsafeServer(2)]
  const nodes = vi.spyOn(cluster, 'nodes')
  const logger = createLogger('test', 'silent')
  const errors = vi.spyOn(logger, 'error')
  const check = new DurabilityCheck({
    redis: cluster,
    allowUnsafe: false,
    durable: plainRedis(cluster),
    logger,
  })
  onTestFinished(() => check.stop())

  const checkWith = async (servers: Redis[]): Promise<void> => {
    nodes.mockReturnValue(servers)
    cluster.emit('ready')
    await vi.waitFor(() => expect(check.readiness.reasons).toHaveLength(servers.length))
    // The check itself ends after its last result.
    await new Promise(setImmediate)
  }
  nodes.mockReturnValue([stays, leaves])
  check.start()
  await checkWith([stays, leaves])
  expect(errors).toHaveBeenCalledTimes(2)
  await checkWith([stays])
  expect(errors).toHaveBeenCalledTimes(2)
  await checkWith([stays, leaves])
  expect(errors).toHaveBeenCalledTimes(3)
})
