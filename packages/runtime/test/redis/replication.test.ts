import { ReplyError, type Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { checkReplication } from '../../src/redis/replication.ts'
import { fakeServer, list, strings } from '../support/fake-server.ts'

const primaryInfo = (online: number): string => {
  const replicas = Array.from(
    { length: online },
    (_, i) => `slave${i}:ip=127.0.0.1,port=${7000 + i},state=online`,
  )
  return ['role:master', `connected_slaves:${online}`, ...replicas].join('\r\n')
}

/** A server that replies to a check. `nodes`: its reply to CLUSTER NODES, or an error. */
function serverWith(
  info: string,
  nodes: string | Error,
  { minReplicas = '1', hasWaitAof = true, sentinelPort = 0 } = {},
): Redis {
  return {
    options: sentinelPort === 0 ? {} : { name: 'm', sentinels: [{ host: '127.0.0.1', port: sentinelPort }] },
    info: () => Promise.resolve(info),
    config: () => Promise.resolve(['min-replicas-to-write', minReplicas]),
    call: async (command: string) => {
      if (command === 'COMMAND') return [hasWaitAof ? ['waitaof', 4] : null]
      if (nodes instanceof Error) throw nodes
      return nodes
    },
  } as unknown as Redis
}

const noCluster = new ReplyError('ERR This instance has cluster support disabled')
const clusterNodes = (otherPrimary: string): string =>
  [
    'aaa 127.0.0.1:1@11 myself,master - 0 0 1 connected 0-8191',
    'ccc 127.0.0.1:3@13 slave aaa 0 0 1 connected',
    `ddd 127.0.0.1:4@14 slave,fail ${otherPrimary} 0 0 1 disconnected`,
    '',
  ].join('\n')

/** A Sentinel that lists replicas with these addresses, and counts `hidden` more. */
function sentinelWith(hosts: readonly string[], hidden = 0): Promise<number> {
  const replicas = hosts.map((ip) => strings(['name', 'ip', 'ip', ip, 'port', '7000']))
  const counts = { 'num-slaves': hosts.length + hidden, 'num-other-sentinels': 2, quorum: 2 }
  return fakeServer((command) => {
    if (command.includes('REPLICAS')) return list(replicas)
    return command.includes('MASTER') ? strings(Object.entries(counts).flat().map(String)) : '+OK\r\n'
  })
}

const CLEAN = { problems: [], warnings: [] }

it.each([
  ['as many as must confirm', primaryInfo(1)],
  ['a replica, which the check of its primary covers', 'role:slave'],
])('finds nothing wrong with %s', async (_what, info) => {
  expect(await checkReplication(serverWith(info, clusterNodes('bbb')), 1)).toEqual(CLEAN)
})

it.each([
  ['one of a cluster has failed, and may return and be promoted', 1, clusterNodes('aaa'), true],
  ['one too many is connected', 2, noCluster, true],
  ['one is missing, which is no danger', 0, noCluster, false],
])('finds a problem: %s', async (_what, online, nodes, isDanger) => {
  const { danger, problems } = await checkReplication(serverWith(primaryInfo(online), nodes), 1)
  expect(problems).toEqual([
    expect.stringContaining(isDanger ? 'has 2 replicas, and only 1 must confirm' : 'has 0 of the 1 replicas'),
  ])
  expect(danger).toBe(isDanger ? problems[0] : undefined)
})

it.each([
  ['min-replicas-to-write is 0 instead of 1', { minReplicas: '0' }],
  ['has no WAITAOF', { hasWaitAof: false }],
])('warns that a primary %s', async (warning, options) => {
  const { warnings } = await checkReplication(serverWith(primaryInfo(1), noCluster, options), 1)
  expect(warnings).toEqual([expect.stringContaining(warning)])
})

it.each([
  ['the connected one', ['127.0.0.1'], 0, 1],
  ['another one, which is away', ['127.0.0.2'], 0, 2],
  ['the same one by another address', ['2001:db8::1'], 0, 1],
  ['one by a name, and another one', ['redis-2', 'redis-3'], 0, 2],
  ['a hidden one', [], 1, 1],
  ['a hidden one, and another one', ['127.0.0.1'], 1, 2],
])('counts connected replicas and replicas of the Sentinels: %s', async (_which, hosts, hidden, count) => {
  const sentinelPort = await sentinelWith(hosts, hidden)
  const findings = await checkReplication(serverWith(primaryInfo(1), noCluster, { sentinelPort }), 1)
  expect(findings.warnings).toEqual([])
  expect(findings.problems.join()).toContain(count === 1 ? '' : `has ${count} replicas`)
  expect(findings.danger === undefined).toBe(count === 1)
})

it.each([
  ['reports', primaryInfo(1), ['127.0.0.1:7000', '127.0.0.2:7000']],
  ['hides', 'role:master\r\nconnected_slaves:1', undefined],
])(
  'names the replicas that it counted with Sentinels, if the server %s them',
  async (_how, info, counted) => {
    const sentinelPort = await sentinelWith(['127.0.0.2'])
    expect((await checkReplication(serverWith(info, noCluster, { sentinelPort }), 2)).counted).toEqual(
      counted,
    )
  },
)

// The last result holds.
it.each<[what: string, nodes: Error, portOf: () => number | Promise<number>, message: string]>([
  ['the nodes of the cluster are not known', new Error('Command timed out'), () => 0, 'Command timed out'],
  ['no Sentinel replies', noCluster, () => 1, 'no Sentinel answers'],
  [
    'no Sentinel knows the primary',
    noCluster,
    () => fakeServer(() => '-ERR No such master\r\n'),
    'no Sentinel',
  ],
])('has no result if %s', async (_what, nodes, portOf, message) => {
  const server = serverWith(primaryInfo(1), nodes, { sentinelPort: await portOf() })
  await expect(checkReplication(server, 1)).rejects.toThrow(message)
})

it('has a result if the Sentinels do not permit the question', async () => {
  const sentinelPort = await fakeServer(() => '-NOPERM this user has no permissions\r\n')
  const { warnings } = await checkReplication(serverWith(primaryInfo(1), noCluster, { sentinelPort }), 1)
  expect(warnings).toEqual(['the Sentinels do not permit reading their replicas'])
})
