import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { findLeaks, openResources, openSockets } from '../src/open-resources.ts'
import { pause } from '../src/waiting.ts'

const GRACE_MS = 100

/** vitest reports the result of the previous test with a timer of 100 ms, which would count as open before. */
beforeEach(() => pause(250))

it('finds nothing when nothing was opened', async () => {
  expect(await findLeaks(openResources(), GRACE_MS)).toEqual([])
})

it('finds a timer, and not one that is cleared', async () => {
  const before = openResources()
  const timer = setInterval(() => undefined, 60_000)
  expect(await findLeaks(before, GRACE_MS)).toEqual(['1 Timeout'])
  clearInterval(timer)
  expect(await findLeaks(before, GRACE_MS)).toEqual([])
})

it('finds a server and the sockets of a connection, until they are closed', async () => {
  const before = openResources()
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  expect(await findLeaks(before, GRACE_MS)).toEqual(['1 TCPServerWrap'])
  const { port } = server.address() as AddressInfo
  const client = connect(port, '127.0.0.1')
  await once(server, 'connection')
  expect(await findLeaks(before, GRACE_MS)).toEqual(['1 TCPServerWrap', '2 TCPSocketWrap'])
  expect(openSockets()).toContain(`${client.localPort} → ${port}`)
  client.destroy()
  server.close()
  expect(await findLeaks(before, GRACE_MS)).toEqual([])
})

it('finds a child process, until it exits', async () => {
  const before = openResources()
  const child = spawn(process.execPath, ['--eval', 'setTimeout(() => {}, 60_000)'], { stdio: 'ignore' })
  expect(await findLeaks(before, GRACE_MS)).toEqual(['1 ProcessWrap'])
  child.kill()
  expect(await findLeaks(before, GRACE_MS)).toEqual([])
})

it('waits for resources that disappear within the grace period, even with fake timers', async () => {
  const before = openResources()
  setTimeout(() => undefined, GRACE_MS / 2)
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  expect(await findLeaks(before, 10 * GRACE_MS)).toEqual([])
})
