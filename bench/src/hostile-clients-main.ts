// Measures how much memory clients can take from an API process that send without reading, send slowly, or send little that decodes to
// much; and whether another project can send meanwhile.
import { CommandLine } from '@sluice/harness/command-line'
import { pause, postHead, postLogs } from '@sluice/harness'
import { type Installation, provisionProject, startInstallation, withRegistry } from '@sluice/local'
import { limits } from '@sluice/schema'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { zstdCompressSync } from 'node:zlib'
import { readPositive } from './options.ts'

const commandLine = new CommandLine(`node bench/src/hostile-clients-main.ts [options]

  --only LIST        comma-separated; default all of:
                     pages   11 connections, each with 2,000 pipelined requests for the largest page, which read nothing
                     heads   200 connections with 64 KB of the shortest pipelined requests behind such a page, which read nothing
                     bodies  200 connections, each with a body of 5 MiB that lacks its last byte
                     zstd    64 connections that send bodies of 5 MiB, each of them 600 bytes as zstd
                     slow    10,000 connections that send a head or a body of 8 KB slowly
  --seconds N        length of each measurement; default 15
  --connections N    connections of slow; default 10,000
  --old-space-mb N   --max-old-space-size of the API
  --help             prints this text
`)
const values = commandLine.read({
  only: { type: 'string', default: 'pages,heads,bodies,zstd,slow' },
  seconds: { type: 'string', default: '15' },
  connections: { type: 'string', default: '10000' },
  'old-space-mb': { type: 'string' },
})
const windowMs = readPositive(commandLine, '--seconds', values.seconds) * 1_000
const slowConnections = readPositive(commandLine, '--connections', values.connections)
const oldSpaceMb = values['old-space-mb']

const SAMPLE_INTERVAL_MS = 100
/** The interval of the posts of the other project. */
const POST_INTERVAL_MS = 500
/** Less than the backlog of the server. */
const OPENED_AT_ONCE = 100
const SLOW_BYTES = 8 * 1024
const entry = '{"level":"info","message":"m"}'
const page = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\n\r\n'

type Attack = (target: Target) => Promise<void>

interface Target {
  readonly port: number
  readonly keys: readonly string[]
  readonly sockets: Socket[]
  /** The connections with an answer 503. */
  readonly rejected: Set<Socket>
}

const attacks: Readonly<Record<string, Attack>> = {
  pages: async (target) => {
    for (const socket of await open(target, 11)) {
      socket.pause()
      socket.write(page.repeat(2_000))
    }
  },
  heads: async (target) => {
    for (const socket of await open(target, 200)) {
      socket.pause()
      socket.write(page.repeat(20) + 'GET / HTTP/1.1\r\n\r\n'.repeat(3_600))
    }
  },
  bodies: async (target) => {
    const body = Buffer.alloc(limits.bodyBytesMax - 1, ' ')
    for (const [index, socket] of (await open(target, 200)).entries()) {
      socket.write(postHead(keyOf(target, index), [`Content-Length: ${limits.bodyBytesMax}`]))
      socket.write(body)
    }
  },
  zstd: async (target) => {
    const body = zstdCompressSync(Buffer.from(entry.padEnd(limits.bodyBytesMax)))
    for (const [index, socket] of (await open(target, 64)).entries()) {
      const head = postHead(keyOf(target, index), [
        'Content-Encoding: zstd',
        `Content-Length: ${body.length}`,
      ])
      const request = Buffer.concat([Buffer.from(head), body])
      socket.on('data', () => socket.write(request))
      socket.write(request)
    }
  },
  slow: async (target) => {
    const head = (index: number): string =>
      index % 2 === 0
        ? postHead(keyOf(target, index), [`X-Note: ${'a'.repeat(SLOW_BYTES)}`]).slice(0, -4)
        : postHead(keyOf(target, index), [`Content-Length: ${SLOW_BYTES * 2}`]) + ' '.repeat(SLOW_BYTES)
    for (let opened = 0; opened < slowConnections; opened += OPENED_AT_ONCE)
      for (const [index, socket] of (await open(target, OPENED_AT_ONCE)).entries()) socket.write(head(index))
    for (const endMs = performance.now() + windowMs; performance.now() < endMs; await pause(2_000))
      for (const socket of target.sockets) if (socket.writable) socket.write(' ')
  },
}

console.log(
  'attack   before MB   most MB   after MB   descriptors   closed   rejected   other project: accepted   failed   slowest ms',
)
const installation = await startInstallation({
  api: {
    environment: oldSpaceMb === undefined ? {} : { NODE_OPTIONS: `--max-old-space-size=${oldSpaceMb}` },
  },
})
try {
  const keys = await createKeys(installation)
  for (const name of values.only.split(',')) {
    const attack = attacks[name] ?? commandLine.fail(`unknown attack: ${name}`)
    console.log(`${name.padEnd(7)}  ${await measure(attack, keys)}`)
  }
} finally {
  await installation.stop()
}
process.exit()

/** The keys of four attackers: one project alone must not take what is left for the others. */
async function createKeys(target: Installation): Promise<string[]> {
  return withRegistry(target, (registry) =>
    Promise.all(['a', 'b', 'c', 'd'].map((name) => provisionProject(registry, `hostile-${name}`))),
  )
}

function keyOf({ keys }: Target, index: number): string {
  return keys[index % keys.length] ?? ''
}

async function measure(attack: Attack, keys: readonly string[]): Promise<string> {
  const pid = installation.processes.api.pid ?? 0
  const sockets: Socket[] = []
  const before = await residentMb(pid)
  const rejected = new Set<Socket>()
  let [most, descriptors] = [0, 0]
  const over = new AbortController()
  const watch = async (): Promise<void> => {
    while (!over.signal.aborted) {
      most = Math.max(most, await residentMb(pid))
      descriptors = Math.max(descriptors, (await readdir(`/proc/${pid}/fd`)).length)
      await pause(SAMPLE_INTERVAL_MS)
    }
  }
  const watching = watch()
  const other = postMeanwhile(over.signal)
  const startedMs = performance.now()
  await attack({ port: Number(new URL(installation.apiUrl).port), keys, sockets, rejected })
  await pause(Math.max(0, windowMs - (performance.now() - startedMs)))
  over.abort()
  await watching
  const { accepted, failed, slowestMs } = await other
  const closed = sockets.filter(({ destroyed }) => destroyed).length
  for (const socket of sockets) socket.destroy()
  await pause(2_000)
  const figures = [
    before,
    most,
    await residentMb(pid),
    descriptors,
    closed,
    rejected.size,
    accepted,
    failed,
    slowestMs,
  ]
  return figures.map((figure) => Math.round(figure).toString().padStart(9)).join('')
}

async function open({ port, sockets, rejected }: Target, count: number): Promise<Socket[]> {
  const opened: Socket[] = []
  while (opened.length < count) {
    const group = Array.from({ length: Math.min(OPENED_AT_ONCE, count - opened.length) }, () =>
      connect({ port, host: '127.0.0.1' }),
    )
    await Promise.all(group.map((socket) => once(socket, 'connect')))
    opened.push(...group)
  }
  for (const socket of opened) {
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      if (data.includes('HTTP/1.1 503')) rejected.add(socket)
    })
  }
  sockets.push(...opened)
  return opened
}

/** Posts entries of another project. */
async function postMeanwhile(
  over: AbortSignal,
): Promise<Record<'accepted' | 'failed' | 'slowestMs', number>> {
  const result = { accepted: 0, failed: 0, slowestMs: 0 }
  while (!over.aborted) {
    const startedMs = performance.now()
    try {
      const { status } = await postLogs(installation, entry)
      if (status === 202) result.accepted += 1
      else result.failed += 1
    } catch {
      result.failed += 1
    }
    result.slowestMs = Math.max(result.slowestMs, performance.now() - startedMs)
    await pause(POST_INTERVAL_MS)
  }
  return result
}

async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024
}
