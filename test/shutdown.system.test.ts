import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { eventually } from '@sluice/harness'
import { Ports } from '@sluice/local'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'

const DEADLINE_MS = 1_000
/** How long an exit may take on a busy machine. After this time, the process is killed. */
const MARGIN_MS = 10_000

/** Accepts connections and sends no byte, like Redis and ClickHouse when they hang. */
let silent: Server
const sockets = new Set<Socket>()
let running: ChildProcess | undefined

beforeAll(async () => {
  silent = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('data', () => undefined)
  })
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
})
afterEach(() => {
  running?.kill('SIGKILL')
})
afterAll(() => {
  for (const socket of sockets) socket.destroy()
  silent.close()
})

type Role = 'api' | 'worker'

/** Starts a process whose Redis and ClickHouse are silent, and waits until it is alive. */
async function start(role: Role): Promise<ChildProcess> {
  const { port } = silent.address() as AddressInfo
  const opsPort = await new Ports().free()
  const program = fileURLToPath(new URL(`../apps/${role}/src/main.ts`, import.meta.url))
  const child = spawn(process.execPath, [program], {
    env: {
      PORT: '0',
      OPS_PORT: String(opsPort),
      SHUTDOWN_DEADLINE_MS: String(DEADLINE_MS),
      REDIS_URL: `redis://127.0.0.1:${port}`,
      CLICKHOUSE_URL: `http://127.0.0.1:${port}`,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running = child
  await eventually(async () => {
    const response = await fetch(`http://127.0.0.1:${opsPort}/livez`)
    await response.body?.cancel()
  })
  return child
}

// How the process ends with other readers of its log, and after a second signal: packages/runtime/test/process.test.ts.
it.each<Role>(['api', 'worker'])(
  'SIGTERM ends the %s while Redis and ClickHouse are silent, and the reader of its log has exited',
  async (role) => {
    const child = await start(role)
    child.stdout?.destroy()
    const startedAtMs = performance.now()
    const timer = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS + MARGIN_MS)
    child.kill('SIGTERM')
    await once(child, 'exit')
    clearTimeout(timer)
    expect(child.signalCode).not.toBe('SIGKILL')
    expect(performance.now() - startedAtMs).toBeLessThan(DEADLINE_MS + MARGIN_MS)
  },
)

it.each<[Role, string, Record<string, string>]>([
  ['api', 'PORT', { PORT: '65536' }],
  ['api', '192.0.2.1', { HOST: '192.0.2.1' }],
  ['api', 'TRUST_PROXY', { TRUST_PROXY: 'all' }],
  ['api', 'Redis URL', { REDIS_URL: 'http://redis' }],
  ['api', 'REDIS_TLS_CA_FILE', { REDIS_URL: 'rediss://redis', REDIS_TLS_CA_FILE: '/nowhere' }],
  ['worker', 'BATCH_WAIT_MS', { BATCH_WAIT_MS: 'soon' }],
  ['worker', 'CLICKHOUSE_TLS_CA_FILE', { CLICKHOUSE_TLS_CA_FILE: '/nowhere' }],
  ['worker', 'CLICKHOUSE_URL', { CLICKHOUSE_URL: 'nonsense' }],
])('the %s ends with one line if the setting %s is invalid', async (role, name, settings) => {
  const program = fileURLToPath(new URL(`../apps/${role}/src/main.ts`, import.meta.url))
  const child = spawn(process.execPath, [program], { env: settings, stdio: ['ignore', 'pipe', 'pipe'] })
  running = child
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  await once(child, 'close')
  expect(child.exitCode).toBe(1)
  const lines = output.trim().split('\n')
  expect(lines).toHaveLength(1)
  const line = JSON.parse(lines[0] ?? '') as { msg: string; err?: unknown }
  expect(line.msg).toContain(name)
  expect(line.err).toBeUndefined()
})
