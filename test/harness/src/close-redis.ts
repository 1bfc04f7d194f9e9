import type { Socket } from 'node:net'
import type { RedisConnection } from '@sluice/runtime'

/** Closes a connection, and waits until its sockets are closed: a proxy or a server that is stopped next would wait for them. */
export async function closeRedis(redis: RedisConnection): Promise<void> {
  const nodes: readonly { stream?: Socket }[] = 'nodes' in redis ? redis.nodes('all') : [redis]
  // A connection that was never opened has no socket.
  const sockets = nodes.flatMap(({ stream }) => stream ?? []).filter(({ closed }) => !closed)
  redis.disconnect()
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve))))
}
