import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, expect, it } from 'vitest'
import { entry, post } from '../support/http-text.ts'
import { RawConnection } from '../support/raw-http.ts'

/** More, up to what `ulimit -n` lets both sides have, shows what many cost. */
const CONNECTIONS = Number(process.env['IDLE_CONNECTIONS'] ?? 500)
/** Some 10 KB were measured; this is for what the collector has not come to yet. */
const BYTES_PER_CONNECTION_MAX = 64 * 1024
/** How many are opened at a time: fewer than the server's backlog. */
const OPENED_AT_ONCE = 100

let server: ChildProcess
const connections: RawConnection[] = []
afterEach(async () => {
  for (const connection of connections) connection.destroy()
  const gone = once(server, 'exit')
  server.kill('SIGKILL')
  await gone
})

async function residentBytes(): Promise<number> {
  const answer = once(server, 'message')
  server.send('')
  const [message] = (await answer) as [{ residentBytes: number }]
  return message.residentBytes
}

/** Opens connections on each of which a request was answered. */
async function open(count: number, port: number, text: string): Promise<void> {
  for (let opened = 0; opened < count; opened += OPENED_AT_ONCE) {
    const some = await Promise.all(Array.from({ length: OPENED_AT_ONCE }, () => RawConnection.open(port)))
    connections.push(...some)
    for (const connection of some) connection.write(text)
    await expect
      .poll(() => some.every(({ responses }) => responses[0]?.status === 202), { timeout: 10_000 })
      .toBe(true)
  }
}

it('holds idle connections in bounded memory', async () => {
  server = fork(new URL('../support/idle-api-main.ts', import.meta.url), {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const [{ port, key }] = (await once(server, 'message')) as [{ port: number; key: string }]
  const text = post(key, entry)
  // What is allocated once, however many come.
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
