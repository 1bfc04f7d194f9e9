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
  type TestServer,
} from '../scaling/redis-servers.ts'
import { type RedisGroup, replicaFaultsOf } from './redis-group.ts'

const PRIMARIES = 3
/** A replica that moves to another primary would not have to confirm. */
const settings = ['cluster-allow-replica-migration no', 'repl-diskless-sync-delay 0', 'repl-timeout 10']

interface Node {
  readonly id: string
  readonly port: number
  readonly isPrimary: boolean
  /** The id of the primary of a replica. */
  readonly primary: string
  readonly isFailing: boolean
  readonly hasSlots: boolean
}

/** A Redis Cluster of three primaries, each with a replica. */
export class ClusterGroup implements RedisGroup {
  readonly url: string
  readonly faults: RedisGroup['faults']
  readonly replicaFaults: RedisGroup['replicaFaults']
  readonly #servers: readonly TestServer[]
  readonly #random: Random

  private constructor(url: string, servers: readonly TestServer[], random: Random, hashTag: string) {
    this.url = url
    this.#servers = servers
    this.#random = random
    this.faults = {
      'a primary is killed': () => this.#killPrimary(),
      'a replica takes over by force': () => this.#forceFailover(),
      'a primary is frozen until it is replaced': () => this.#freezePrimary(),
      'the slot of a shard moves': () => this.#moveSlot(hashTag),
    }
    this.replicaFaults = replicaFaultsOf(async () => this.#server(pick(random, await this.#replicas()).port))
  }

  /** @param hashTag of the shard whose slot moves */
  static async start(supervisor: Supervisor, random: Random, hashTag: string): Promise<ClusterGroup> {
    const cluster = await startRedisCluster(supervisor, PRIMARIES, settings)
    const [first] = cluster.nodes
    if (first === undefined) throw new Error('the cluster has no node')
    const replicas = await Promise.all(
      cluster.nodes.map((_node, i) => startClusterNode(supervisor, `replica-${i}`, settings)),
    )
    const group = new ClusterGroup(cluster.url, [...cluster.nodes, ...replicas], random, hashTag)
    const bus = await queryServer(first.port, clusterPort)
    for (const { port } of replicas)
      await queryServer(port, (redis) => redis.call('CLUSTER', 'MEET', '127.0.0.1', first.port, bus))
    for (const [i, { port }] of replicas.entries())
      await eventually(() =>
        queryServer(port, async (redis) => {
          await redis.call('CLUSTER', 'REPLICATE', await idOf(cluster.nodes[i]?.port ?? 0))
        }),
      )
    await group.formed()
    return group
  }

  /** Waits until all nodes agree that each primary has a replica, and has sent it everything. */
  async formed(): Promise<void> {
    await eventually(async () => {
      for (const { port } of this.#servers) {
        const nodes = await nodesOf(port)
        const primaries = nodes.filter(({ isPrimary, hasSlots }) => isPrimary && hasSlots)
        const replicated = new Set(nodes.filter(({ isPrimary }) => !isPrimary).map(({ primary }) => primary))
        if (nodes.length !== this.#servers.length || nodes.some(({ isFailing }) => isFailing))
          throw new Error('a node is missing or failing')
        if (primaries.length !== PRIMARIES || primaries.some(({ id }) => !replicated.has(id)))
          throw new Error('a primary has no replica')
        const info = await queryServer(port, (redis) => redis.info('replication'))
        if (!info.includes('connected_slaves:1') && !info.includes('master_link_status:up'))
          throw new Error(`the node on ${port} is not connected`)
      }
    })
  }

  async #killPrimary(): Promise<void> {
    const { port } = await this.#primary()
    const { process } = this.#server(port)
    await process.stop({ signal: 'SIGKILL' })
    await this.#replaced(port)
    await process.start()
  }

  async #freezePrimary(): Promise<void> {
    const { port } = await this.#primary()
    const { process } = this.#server(port)
    process.kill('SIGSTOP')
    await this.#replaced(port)
    process.kill('SIGCONT')
  }

  /** The replica does not ask its primary, which accepts writes until it learns of it. */
  async #forceFailover(): Promise<void> {
    const replica = pick(this.#random, await this.#replicas())
    await queryServer(replica.port, (redis) => redis.call('CLUSTER', 'FAILOVER', 'FORCE'))
    await eventually(async () => {
      const found = (await nodesOf(replica.port)).find(({ id }) => id === replica.id)
      if (found?.isPrimary !== true) throw new Error('the replica has not taken over yet')
    })
  }

  /** Moves the slot, with the keys that are in it, to another primary. */
  async #moveSlot(hashTag: string): Promise<void> {
    const [{ port: anyPort } = await this.#primary()] = this.#servers
    const slot = await queryServer(anyPort, (redis) => redis.cluster('KEYSLOT', `{${hashTag}}`))
    const primaries = await this.#primaries()
    const owner = await queryServer(anyPort, async (redis) => {
      const ranges = (await redis.call('CLUSTER', 'SLOTS')) as [number, number, [string, number, string]][]
      return ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][2]
    })
    const source = primaries.find(({ id }) => id === owner)
    const target = pick(
      this.#random,
      primaries.filter(({ id }) => id !== owner),
    )
    if (source === undefined) throw new Error('no primary has the slot')
    const move = new SlotMove(slot, source.port, target.port)
    await move.begin()
    // Otherwise a replica that takes over has keys of a slot that is not its own, and the slot could not move there.
    while ((await move.keysOn(source.port)).length > 0) await move.migrate(undefined, awaitReplica)
    await move.end(primaries.map(({ port }) => port))
    await queryServer(target.port, async (redis) => {
      // WAIT counts from the last write of its own connection.
      await redis.set(`{${hashTag}}:moved`, '', 'PX', 1)
      await awaitReplica(redis)
    })
  }

  async #replaced(port: number): Promise<void> {
    const other = this.#servers.find((server) => server.port !== port)?.port ?? 0
    await eventually(async () => {
      const node = (await nodesOf(other)).find((each) => each.port === port)
      if (node?.hasSlots !== false) throw new Error('the primary is not replaced yet')
    })
  }

  async #primary(): Promise<Node> {
    return pick(this.#random, await this.#primaries())
  }

  async #primaries(): Promise<Node[]> {
    return (await nodesOf(this.#servers[0]?.port ?? 0)).filter(({ hasSlots }) => hasSlots)
  }

  async #replicas(): Promise<Node[]> {
    return (await nodesOf(this.#servers[0]?.port ?? 0)).filter(({ isPrimary }) => !isPrimary)
  }

  #server(port: number): TestServer {
    const server = this.#servers.find((each) => each.port === port)
    if (server === undefined) throw new Error(`the cluster has no node on ${port}`)
    return server
  }
}

/** What a node knows about all nodes. See CLUSTER NODES. */
async function nodesOf(port: number): Promise<Node[]> {
  const text = await queryServer(port, (redis: Redis) => redis.call('CLUSTER', 'NODES') as Promise<string>)
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
