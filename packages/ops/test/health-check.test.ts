import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { startOpsServer } from '../src/ops-server.ts'

const program = fileURLToPath(new URL('../src/health-check-main.ts', import.meta.url))

/** @returns the exit code */
async function check(port: number, path: string): Promise<number> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program, path], { env: { OPS_PORT: String(port) } })
    child.once('exit', (code) => resolve(code ?? -1))
  })
}

async function startServer(ready: boolean): Promise<number> {
  const server = await startOpsServer({
    host: '127.0.0.1',
    port: 0,
    readiness: () => ({ ready, reasons: [] }),
    dependencies: () => [],
    metrics: { contentType: 'text/plain', text: async () => '' },
  })
  onTestFinished(() => server.close())
  return Number(new URL(server.url).port)
}

it("a container's health check exits with 0 when the process is ready, with 1 when it is not or nothing listens", async () => {
  expect(await check(await startServer(true), '/readyz')).toBe(0)
  const port = await startServer(false)
  expect(await check(port, '/readyz')).toBe(1)
  expect(await check(port, '/livez')).toBe(0)
  expect(await check(1, '/livez')).toBe(1)
})

it("a container's health check exits with 1 at its deadline when the process is frozen", async () => {
  const connections: Socket[] = []
  const silent = createServer((connection) => connections.push(connection))
  onTestFinished(() => {
    for (const connection of connections) connection.destroy()
    silent.close()
  })
  await once(silent.listen(0, '127.0.0.1'), 'listening')
  expect(await check((silent.address() as { port: number }).port, '/livez')).toBe(1)
})
