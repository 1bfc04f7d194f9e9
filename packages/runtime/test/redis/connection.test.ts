import type { Redis } from 'ioredis'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { closeRedis, connectRedis, oncePerInterval, redisInfoField } from '../../src/redis/connection.ts'

describe('oncePerInterval', () => {
  it('is due once per name and interval, however often it is called', () => {
    let nowMs = 0
    const isDue = oncePerInterval(1_000, () => nowMs)
    const times: string[] = []
    for (; nowMs < 2_500; nowMs += 10) {
      for (const name of ['a', 'b']) if (isDue(name)) times.push(`${name} ${nowMs}`)
    }
    expect(times).toEqual(['a 0', 'b 0', 'a 1000', 'b 1000', 'a 2000', 'b 2000'])
  })
})

const INFO =
  '# Memory\r\nused_memory:1234\r\nused_memory_human:1.21K\r\nmaxmemory_policy:noeviction\r\nempty:\r\n'

it.each([
  ['used_memory', '1234'],
  ['maxmemory_policy', 'noeviction'],
  ['memory', undefined],
  ['empty', undefined],
])('reads the field %s of INFO', (name, value) => {
  expect(redisInfoField(INFO, name)).toBe(value)
})

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
  await closeRedis(redis)
  expect(stream.closed).toBe(true)
  expect(redis.status).toBe('end')
})
