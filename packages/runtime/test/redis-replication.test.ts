import { ReplyError, type Redis } from 'ioredis'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { checkReplication } from '../src/redis-replication.ts'

const primaryInfo = (online: number): string =>
  [
    'role:master',
    `connected_slaves:${online}`,
    ...Array.from(
      { length: online },
      (_, i) => `slave${i}:ip=127.0.0.1,port=${7000 + i},state=online,offset=1`,
    ),
  ].join('\r\n')

/** A server that answers what a check asks. `nodes`: its answer to CLUSTER NODES, or an error. */
function serverWith(
  info: string,
  nodes: string | Error,
  { minReplicas = '1', hasWaitAof = true, sentinelPort = 0 } = {},
): Redis {
  const server: Pick<Redis, 'info' | 'options'> & {
    config: () => Promise<unknown>
    call: (command: string) => Promise<unknown>
  } = {
    options: sentinelPort === 0 ? {} : { name: 'm', sentinels: [{ host: '127.0.0.1', port: sentinelPort }] },
    info: () => Promise.resolve(info),
    config: () => Promise.resolve(['min-replicas-to-write', minReplicas]),
    call: async (command) => {
      if (command === 'COMMAND') return [hasWaitAof ? ['waitaof', 4] : null]
      if (nodes instanceof Error) throw nodes
      return nodes
    },
  }
  return server as unknown as Redis
}

const noCluster = new ReplyError('ERR This instance has cluster support disabled')
const clusterNodes = (otherPrimary: string): string =>
  [
    'aaa 127.0.0.1:1@11 myself,master - 0 0 1 connected 0-8191',
    'bbb 127.0.0.1:2@12 master - 0 0 2 connected 8192-16383',
    'ccc 127.0.0.1:3@13 slave aaa 0 0 1 connected',
    `ddd 127.0.0.1:4@14 slave,fail ${otherPrimary} 0 0 1 disconnected`,
    '',
  ].join('\n')

/** A server that answers each command with this error. */
async function rejectingServer(error: string): Promise<number> {
  const server = createServer((socket) => {
    socket.on('data', (data) => {
      const commands = data.toString().match(/^\*\d+\r$/gm)?.length ?? 0
      socket.write(`-${error}\r\n`.repeat(commands))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

describe('a check of the replicas', () => {
  it('finds nothing wrong with as many as must confirm', async () => {
    const server = serverWith(primaryInfo(1), clusterNodes('bbb'))
    expect(await checkReplication(server, 1)).toEqual({ problems: [], warnings: [] })
  })

  it('finds a replica of a cluster that has failed, and may return and be promoted', async () => {
    const { danger, problems } = await checkReplication(serverWith(primaryInfo(1), clusterNodes('aaa')), 1)
    expect(danger).toContain('has 2 replicas, and only 1 must confirm')
    expect(problems).toEqual([danger])
  })

  it('finds a connected replica too many, without a cluster', async () => {
    expect((await checkReplication(serverWith(primaryInfo(2), noCluster), 1)).danger).toContain(
      'has 2 replicas',
    )
  })

  it('finds a missing one, which is no danger', async () => {
    expect(await checkReplication(serverWith(primaryInfo(0), noCluster), 1)).toMatchObject({
      problems: [expect.stringContaining('has 0 of the 1 replicas')],
    })
    expect((await checkReplication(serverWith(primaryInfo(0), noCluster), 1)).danger).toBeUndefined()
  })

  it('warns of a primary that accepts writes without a replica', async () => {
    const { warnings } = await checkReplication(
      serverWith(primaryInfo(1), noCluster, { minReplicas: '0' }),
      1,
    )
    expect(warnings).toEqual(['min-replicas-to-write is 0 instead of 1'])
  })

  it('warns of a server that cannot ask what is on the disks of its replicas', async () => {
    const { warnings } = await checkReplication(
      serverWith(primaryInfo(1), noCluster, { hasWaitAof: false }),
      1,
    )
    expect(warnings).toEqual([expect.stringContaining('has no WAITAOF')])
  })

  it('has no result if the nodes of the cluster are not known: the last one holds', async () => {
    const server = serverWith(primaryInfo(1), new Error('Command timed out'))
    await expect(checkReplication(server, 1)).rejects.toThrow('Command timed out')
  })

  it('has no result if no Sentinel answers', async () => {
    const server = serverWith(primaryInfo(1), noCluster, { sentinelPort: await closedPort() })
    await expect(checkReplication(server, 1)).rejects.toThrow('no Sentinel answers')
  })

  it('has no result if no Sentinel knows the primary', async () => {
    const sentinelPort = await rejectingServer('ERR No such master with that name')
    const server = serverWith(primaryInfo(1), noCluster, { sentinelPort })
    await expect(checkReplication(server, 1)).rejects.toThrow('no Sentinel answers')
  })

  it('has a result if the Sentinels do not permit the question', async () => {
    const sentinelPort = await rejectingServer('NOPERM this user has no permissions')
    const { warnings } = await checkReplication(serverWith(primaryInfo(1), noCluster, { sentinelPort }), 1)
    expect(warnings).toEqual(['the Sentinels do not permit reading their replicas'])
  })

  it('leaves a replica to the check of its primary', async () => {
    const server = serverWith('role:slave', clusterNodes('aaa'))
    expect(await checkReplication(server, 1)).toEqual({ problems: [], warnings: [] })
  })
})
