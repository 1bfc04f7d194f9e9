import { entryText, HttpConnection, postText } from '@sluice/harness'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, expect, it } from 'vitest'

/** Set it higher, up to `ulimit -n` of both processes, to measure the memory of many connections. */
const CONNECTIONS = Number(process.env['IDLE_CONNECTIONS'] ?? 500)
/** About 10 KB were measured. The rest is a margin for garbage that is not collected yet. */
const BYTES_PER_CONNECTION_MAX = 64 * 1024
/** The number of connections opened concurrently: less than the server's backlog. */
const OPENED_AT_ONCE = 100

let server: ChildProcess
const connections: HttpConnection[] = []
afterEach(async () => {
  for (const connection of connections) connection.destroy()
  const exited = once(server, 'exit')
  server.kill('SIGKILL')
  await exited
})

async function residentBytes(): Promise<number> {
  const answer = once(server, 'message')
  server.send('')
  const [message] = (await answer) as [{ residentBytes: number }]
  return message.residentBytes
}

/** Opens connections, and sends a request on each. */
async function open(count: number, port: number, text: string): Promise<void> {
  for (let opened = 0; opened < count; opened += OPENED_AT_ONCE) {
    const group = await Promise.all(Array.from({ length: OPENED_AT_ONCE }, () => HttpConnection.open(port)))
    connections.push(...group)
    for (const connection of group) connection.write(text)
    await expect.poll(() => group.every(({ responses }) => responses[0]?.status === 202)).toBe(true)
  }
}

it('uses bounded memory for idle connections', async () => {
  server = fork(new URL('../support/idle-api-main.ts', import.meta.url), {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const [{ port, key }] = (await once(server, 'message')) as [{ port: number; key: string }]
  const text = postText(key, entryText)
  // The first connections cause allocations that do not depend on their number.
  await open(OPENED_AT_ONCE, port, text)
  const before = await residentBytes()
  await open(CONNECTIONS, port, text)
  const bytes = await residentBytes()
  const each = (bytes - before) / CONNECTIONS
  process.stdout.write(
    `${CONNECTIONS} idle connections: ${Math.round(bytes / 1e6)} MB resident, ${Math.round(each)} bytes each\n`,
  )
  expect(each).toBeLessThan(BYTES_PER_CONNECTION_MAX)
}, 120_000)
