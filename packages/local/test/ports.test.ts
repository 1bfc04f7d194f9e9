import { createServer, type Server } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { Ports, probePort } from '../src/ports.ts'

const ports = new Ports()
let taken: Server | undefined

afterEach(() => {
  taken?.close()
  taken = undefined
})

async function takePort(port: number): Promise<void> {
  const server = createServer()
  taken = server
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
}

test('a preferred port is returned if it is free', async () => {
  const port = await ports.free()
  expect(await ports.free(port)).toBe(port)
})

test('another port is returned if the preferred one is taken', async () => {
  const port = await ports.free()
  await takePort(port)
  expect(await probePort(port)).toEqual({ code: 'EADDRINUSE' })
  expect(await ports.free(port)).not.toBe(port)
})

test('no port is returned twice, even while no process listens on it', async () => {
  const returned = await Promise.all(Array.from({ length: 200 }, () => ports.free()))
  expect(new Set(returned).size).toBe(200)
})

test('a start that lost its port to another program is retried on another port', async () => {
  const attempts: number[] = []
  const result = await ports.startOn(undefined, async (port) => {
    attempts.push(port)
    if (attempts.length > 1) return 'started'
    await takePort(port)
    throw new Error('address in use')
  })
  expect(result).toBe('started')
  expect(new Set(attempts).size).toBe(2)
})

test('a start that fails for another reason is not retried', async () => {
  let attempts = 0
  const start = async (): Promise<never> => {
    attempts++
    throw new Error('broken')
  }
  await expect(ports.startOn(undefined, start)).rejects.toThrow('broken')
  expect(attempts).toBe(1)
})
