import { createServer, type Server } from 'node:net'
import { probePort } from '@sluice/runtime'
import { afterEach, expect, test } from 'vitest'
import { Ports } from '../src/ports.ts'

const ports = new Ports()
let taken: Server | undefined
afterEach(() => taken?.close())

async function takePort(port: number): Promise<void> {
  const server = createServer()
  taken = server
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
}

test('a preferred port is returned if it is free, and another one if it is taken', async () => {
  const port = await ports.free()
  expect(await ports.free(port)).toBe(port)
  await takePort(port)
  expect(await probePort(port)).toBe('EADDRINUSE')
  expect(await ports.free(port)).not.toBe(port)
})

test('no port is returned twice, even while no process listens on it', async () => {
  const returned = await Promise.all(Array.from({ length: 200 }, () => ports.free()))
  expect(new Set(returned).size).toBe(200)
})

test('a port that another supervisor has reserved is not returned, even while no process listens on it', async () => {
  const reservation = createServer()
  taken = reservation
  const next = (await ports.free()) + 1
  await new Promise<void>((resolve) => reservation.listen(`\0sluice-local:127.0.0.1:${next}`, resolve))
  expect(await ports.free()).not.toBe(next)
})

test.each([true, false])(
  'a failed start is retried on another port only if its port was taken: %s',
  async (isTaken) => {
    const attempts: number[] = []
    const start = ports.startOn(undefined, async (port) => {
      attempts.push(port)
      if (attempts.length > 1) return 'started'
      if (isTaken) await takePort(port)
      throw new Error('broken')
    })
    expect(await start.catch(String)).toBe(isTaken ? 'started' : 'Error: broken')
    expect(new Set(attempts).size).toBe(isTaken ? 2 : 1)
  },
)
