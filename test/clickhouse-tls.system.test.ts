import { eventually, postLogs } from '@sluice/harness'
import { makeCertificates } from '@sluice/harness/certificates'
import { startTestServices } from '@sluice/harness/test-installation'
import { type Installation, type Services, startInstallation } from '@sluice/local'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type Server } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fakeContext, type FakeContext } from '../apps/cli/test/fake-context.ts'
import { run } from '../apps/cli/src/run.ts'

let folder: string
let caFile: string
let proxy: Server
let port: number
let services: Services
let installation: Installation

/** A proxy that adds TLS to ClickHouse. */
async function startProxy(url: string, options: { cert: Buffer; key: Buffer }): Promise<Server> {
  const { hostname, port: target } = new URL(url)
  const server = createServer(options, (socket) => {
    const upstream = connect(Number(target), hostname)
    // When one side closes, the other is closed too.
    socket.on('error', () => upstream.destroy()).on('close', () => upstream.destroy())
    upstream.on('error', () => socket.destroy()).on('close', () => socket.destroy())
    socket.pipe(upstream).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-tls-'))
  const certificates = await makeCertificates(folder, '127.0.0.1')
  caFile = certificates.caFile
  services = await startTestServices()
  proxy = await startProxy(services.clickhouse.url, {
    cert: await readFile(certificates.certificateFile),
    key: await readFile(certificates.keyFile),
  })
  port = (proxy.address() as AddressInfo).port
  const environment = { CLICKHOUSE_URL: `https://127.0.0.1:${port}`, CLICKHOUSE_TLS_CA_FILE: caFile }
  installation = await startInstallation({ services, worker: { environment } })
})

afterAll(async () => {
  await installation?.stop()
  proxy?.close()
  await rm(folder, { recursive: true })
})

/** Runs a command of `sluice` that connects to ClickHouse by TLS. */
async function sluice(args: string[], environment: Record<string, string>): Promise<[number, FakeContext]> {
  const { username, password, database } = services.clickhouse
  const context = fakeContext({
    environment: {
      CLICKHOUSE_URL: `https://127.0.0.1:${port}`,
      CLICKHOUSE_USERNAME: username,
      CLICKHOUSE_PASSWORD: password,
      CLICKHOUSE_DATABASE: database,
      ...environment,
    },
  })
  return [await run(args, context), context]
}

it('with the CA file of a private authority, a worker inserts, and the command line migrates and counts', async () => {
  const sent = { level: 'info', message: 'By TLS', service: 'tls' }
  expect(await postLogs(installation, sent)).toMatchObject({ status: 202 })
  const environment = { CLICKHOUSE_TLS_CA_FILE: caFile }
  const [code, migrated] = await sluice(['migrate'], environment)
  expect([code, migrated.written.stderr]).toEqual([0, ''])
  await eventually(async () => {
    const { projectId, redisUrl } = installation
    const args = ['rows', 'delete', '--project', projectId, '--redis-url', redisUrl, '"By TLS"']
    const [, counted] = await sluice(args, environment)
    expect(counted.written.stderr).toContain('1 rows')
  })
})

it('without it, the command line reports the reason, and the setting that is missing', async () => {
  const [code, { written }] = await sluice(['migrate'], {})
  expect(code).toBe(1)
  expect(written.stderr).toMatch(
    /^sluice: ClickHouse at https:\/\/127\.0\.0\.1:\d+ has a certificate that is not trusted \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\); CLICKHOUSE_TLS_CA_FILE can name the file of its authority\n$/,
  )
})
