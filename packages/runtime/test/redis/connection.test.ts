import { Cluster, type Redis } from 'ioredis'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { connectRedis } from '../../src/redis/connection.ts'

// test/scaling/silent-connection.system.test.ts waits for it.
it.each(['redis://127.0.0.1:1', 'redis-sentinel://127.0.0.1:1/name', 'redis-cluster://127.0.0.1:1'])(
  'a connection to %s that waits for a reply is given up after 15 s of silence',
  async (url) => {
    const redis = connectRedis(url, { failFast: false })
    redis.on('error', () => undefined)
    redis.disconnect()
    const options = redis instanceof Cluster ? redis.options.redisOptions : redis.options
    expect(options?.socketTimeout).toBe(15_000)
  },
)

it('a connection is closed when its socket is, also if the server does not close its side', async () => {
  const accepted: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => accepted.push(socket.resume()))
  onTestFinished(() => {
    for (const socket of accepted) socket.destroy()
    server.close()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const redis = connectRedis(`redis://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    failFast: false,
  })
  redis.on('error', () => undefined)
  await once(redis, 'connect')
  const { stream } = redis as Redis
  redis.disconnect()
  await once(stream, 'close')
  expect(redis.status).toBe('end')
})
