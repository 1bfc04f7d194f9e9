import { createServer, type Server } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { freePort, onFreePort, probePort } from '../src/ports.ts'

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

test('a preferred port that is free is taken', async () => {
  const port = await freePort()
  expect(await freePort(port)).toBe(port)
})

test('a preferred port that is taken is replaced by another', async () => {
  const port = await freePort()
  await takePort(port)
  expect(await probePort(port)).toEqual({ code: 'EADDRINUSE' })
  expect(await freePort(port)).not.toBe(port)
})

test('no port is given twice, even while nobody listens on it', async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, () => freePort()))
  expect(new Set(ports).size).toBe(200)
})

test('a start that lost its port to somebody else is tried on another one', async () => {
  const ports: number[] = []
  const result = await onFreePort(undefined, async (port) => {
    ports.push(port)
    if (ports.length > 1) return 'started'
    await takePort(port)
    throw new Error('address in use')
  })
  expect(result).toBe('started')
  expect(new Set(ports).size).toBe(2)
})

test('a start that fails for another reason is not tried again', async () => {
  let attempts = 0
  const start = async (): Promise<never> => {
    attempts++
    throw new Error('broken')
  }
  await expect(onFreePort(undefined, start)).rejects.toThrow('broken')
  expect(attempts).toBe(1)
})
