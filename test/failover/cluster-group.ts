import { eventually, pick, type Random } from '@sluice/harness'
import type { Supervisor } from '@sluice/local'
import type { Redis } from 'ioredis'
import {
  clusterPort,
  idOf,
  queryServer,
  SlotMove,
  startClusterNode,
  startRedisCluster,
} from '../scaling/redis-servers.ts'
import { type RedisGroup, replicaFaultsOf, serverOn, whileDead, whileFrozen } from './redis-group.ts'

const PRIMARIES = 3
/** A replica that moves to another primary would not have to confirm. */
const settings = ['cluster-allow-replica-migration no', 'repl-diskless-sync-delay 0', 'repl-timeout 10']

/**
 * Starts a Redis Cluster of three primaries, each with a replica.
 *
 * @param hashTag of the shard whose slot moves
 */
export async function startClusterGroup(
  supervisor: Supervisor,
  random: Random,
  hashTag: string,
): Promise<RedisGroup> {
  const cluster = await startRedisCluster(supervisor, PRIMARIES, settings)
  const replicas = await Promise.all(
    cluster.nodes.map((_node, i) => startClusterNode(supervisor, `replica-${i}`, settings)),
  )
  const servers = [...cluster.nodes, ...replicas]
  const anyPort = servers[0]?.port ?? 0
  const bus = await queryServer(anyPort, clusterPort)
  for (const { port } of replicas)
    await queryServer(port, (redis) => redis.call('CLUSTER', 'MEET', '127.0.0.1', anyPort, bus))
  for (const [i, { port }] of replicas.entries())
    await eventually(() =>
      queryServer(port, async (redis) => {
        await redis.call('CLUSTER', 'REPLICATE', await idOf(cluster.nodes[i]?.port ?? 0))
      }),
    )

  const primaries = async (): Promise<Node[]> => (await nodesOf(anyPort)).filter(({ hasSlots }) => hasSlots)
  const replica = async (): Promise<Node> =>
    pick(
      random,
      (await nodesOf(anyPort)).filter(({ isPrimary }) => !isPrimary),
    )
  const replaced = (port: number): Promise<void> =>
    eventually(async () => {
      const nodes = await nodesOf(servers.find((server) => server.port !== port)?.port ?? 0)
      if (nodes.find((each) => each.port === port)?.hasSlots !== false)
        throw new Error('the primary is not replaced yet')
    })
  /** Does something to a primary until it is replaced. */
  const afflict = async (fault: typeof whileDead): Promise<void> => {
    const { port } = pick(random, await primaries())
    await fault(serverOn(port, servers), () => replaced(port))
  }

  /** The replica does not ask its primary, which accepts writes until it learns of it. */
  const forceFailover = async (): Promise<void> => {
    const { id, port } = await replica()
    await queryServer(port, (redis) => redis.call('CLUSTER', 'FAILOVER', 'FORCE'))
    await eventually(async () => {
      if ((await nodesOf(port)).find((each) => each.id === id)?.isPrimary !== true)
        throw new Error('the replica has not taken over yet')
    })
  }

  /** Moves the slot, with the keys that are in it, to another primary. */
  const moveSlot = async (): Promise<void> => {
    const slot = await queryServer(anyPort, (redis) => redis.cluster('KEYSLOT', `{${hashTag}}`))
    const ranges = (await queryServer(anyPort, (redis) => redis.call('CLUSTER', 'SLOTS'))) as Ranges
    const owner = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][2]
    const [all, others] = [await primaries(), (await primaries()).filter(({ id }) => id !== owner)]
    const source = all.find(({ id }) => id === owner)
    if (source === undefined) throw new Error('no primary has the slot')
    const move = new SlotMove(slot, source.port, pick(random, others).port)
    await move.begin()
    // Otherwise a replica that takes over has keys of a slot that is not its own, and the slot could not move there.
    while ((await move.keysOn(source.port)).length > 0) await move.migrate(undefined, awaitReplica)
    await move.end(all.map(({ port }) => port))
    await queryServer(move.target, async (redis) => {
      // WAIT counts from the last write of its own connection.
      await redis.set(`{${hashTag}}:moved`, '', 'PX', 1)
      await awaitReplica(redis)
    })
  }

  const group: RedisGroup = {
    url: cluster.url,
    faults: {
      'a primary is killed': () => afflict(whileDead),
      'a replica takes over by force': forceFailover,
      'a primary is frozen until it is replaced': () => afflict(whileFrozen),
      'the slot of a shard moves': moveSlot,
    },
    replicaFaults: replicaFaultsOf(async () => serverOn((await replica()).port, servers)),
    /** All nodes agree that each primary has a replica, and has sent it everything. */
    formed: () =>
      eventually(async () => {
        for (const { port } of servers) {
          const nodes = await nodesOf(port)
          const owners = nodes.filter(({ isPrimary, hasSlots }) => isPrimary && hasSlots)
          const replicated = new Set(
            nodes.filter(({ isPrimary }) => !isPrimary).map(({ primary }) => primary),
          )
          if (nodes.length !== servers.length || nodes.some(({ isFailing }) => isFailing))
            throw new Error('a node is missing or failing')
          if (owners.length !== PRIMARIES || owners.some(({ id }) => !replicated.has(id)))
            throw new Error('a primary has no replica')
          const info = await queryServer(port, (redis) => redis.info('replication'))
          if (!info.includes('connected_slaves:1') && !info.includes('master_link_status:up'))
            throw new Error(`the node on ${port} is not connected`)
        }
      }),
  }
  await group.formed()
  return group
}

type Ranges = readonly [from: number, to: number, owner: [host: string, port: number, id: string]][]

type Node = Awaited<ReturnType<typeof nodesOf>>[number]

/** What a node knows about all nodes. See CLUSTER NODES. */
async function nodesOf(port: number) {
  const text = await queryServer(port, (redis) => redis.call('CLUSTER', 'NODES') as Promise<string>)
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [id = '', address = '', flags = '', primary = '', , , , , ...slots] = line.split(' ')
      return {
        id,
        port: Number(/:(\d+)@/.exec(address)?.[1]),
        isPrimary: flags.includes('master'),
        primary,
        isFailing: flags.includes('fail'),
        hasSlots: slots.some((slot) => !slot.startsWith('[')),
      }
    })
}

/** Waits until a replica has all writes of the connection. */
function awaitReplica(redis: Redis): Promise<void> {
  return eventually(async () => {
    if ((await redis.wait(1, 1_000)) < 1) throw new Error('no replica has confirmed the move of the slot')
  })
}
