import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { canSharePorts, claimPort } from '../src/ports.ts'

it.runIf(canSharePorts)('a claimed port is refused to a second claim until the first one ends', async () => {
  const first = await claimPort('127.0.0.1', 0)
  await expect(claimPort('127.0.0.1', first.port)).rejects.toThrow(
    `listen EADDRINUSE: address already in use 127.0.0.1:${first.port}`,
  )
  first.close()
  const second = await claimPort('127.0.0.1', first.port)
  expect(second.port).toBe(first.port)
  second.close()
})

it.runIf(canSharePorts)('a port is not claimed where a program listens that would share it', async () => {
  const other = createServer()
  onTestFinished(() => void other.close())
  await once(other.listen({ host: '127.0.0.1', port: 0, reusePort: true }), 'listening')
  const { port } = other.address() as AddressInfo
  for (const host of ['127.0.0.1', '0.0.0.0'])
    await expect(claimPort(host, port)).rejects.toMatchObject({ code: 'EADDRINUSE', syscall: 'listen' })
})
