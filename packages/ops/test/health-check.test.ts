import { execFile } from 'node:child_process'
import { createServer, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { type OpsServer, startOpsServer } from '../src/ops-server.ts'

const program = fileURLToPath(new URL('../src/health-check-main.ts', import.meta.url))
const servers: OpsServer[] = []

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

/** @returns the exit code */
async function check(port: number, path: string): Promise<number> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program, path], { env: { OPS_PORT: String(port) } })
    child.once('exit', (code) => resolve(code ?? -1))
  })
}

async function startServer(ready: boolean): Promise<number> {
  const readiness = (): { ready: boolean; reasons: string[] } => ({ ready, reasons: [] })
  const server = await startOpsServer({ host: '127.0.0.1', port: 0, readiness })
  servers.push(server)
  return Number(new URL(server.url).port)
}

describe("a container's health check", () => {
  it('exits with 0 when the process is ready', async () => {
    expect(await check(await startServer(true), '/readyz')).toBe(0)
  })

  it('exits with 1 when the process is alive but not ready', async () => {
    const port = await startServer(false)
    expect(await check(port, '/readyz')).toBe(1)
    expect(await check(port, '/livez')).toBe(0)
  })

  it('exits with 1 when no process listens', async () => {
    expect(await check(1, '/livez')).toBe(1)
  })

  it('exits with 1 at its deadline when the process is frozen', async () => {
    const connections: Socket[] = []
    const silent = createServer((connection) => connections.push(connection))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = silent.address() as { port: number }
      expect(await check(port, '/livez')).toBe(1)
    } finally {
      for (const connection of connections) connection.destroy()
      silent.close()
    }
  }, 15_000)
})
