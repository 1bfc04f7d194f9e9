import { eventually, postLogs } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'
import { scrape, sumOf } from '@sluice/harness/metrics'
import { scanLogs } from '@sluice/harness/process-logs'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { type App, type Installation, startApi, startWorker, withRegistry } from '@sluice/local'
import { generateApiKey } from '@sluice/projects'
import { Redis } from 'ioredis'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runSluice } from './sluice-command.ts'

const LOST = /^Redis has lost its data: it has no projects\. Restore them: /
const FOREIGN = /^Redis has lost its data: it has other projects than ClickHouse/
const entry = { level: 'info', message: 'm' }

let installation: Installation
let redis: Redis
let folder: string
let backupFile: string

beforeAll(async () => {
  installation = await startTestInstallation()
  redis = new Redis(installation.redisUrl)
  folder = mkdtempSync(join(tmpdir(), 'sluice-registry-'))
  backupFile = join(folder, 'projects.json')
  const { stdout } = await projects('export')
  writeFileSync(backupFile, stdout)
})

afterAll(async () => {
  redis?.disconnect()
  await installation?.stop({ force: true })
  rmSync(folder, { recursive: true, force: true })
})

const projects = (...args: string[]): ReturnType<typeof runSluice> =>
  runSluice(['projects', ...args], { REDIS_URL: installation.redisUrl, SLUICE_PREFIX: installation.prefix })

/** With another key each time, since the answer to one is cached. */
const sendUnknown = (apiUrl = installation.apiUrl): ReturnType<typeof postLogs> =>
  postLogs({ apiUrl, apiKey: generateApiKey() }, entry)

async function readReady(opsUrl: string): Promise<{ status: number; reasons: string[] }> {
  const response = await fetch(`${opsUrl}/readyz`)
  const { reasons = [] } = (await response.json()) as { reasons?: string[] }
  return { status: response.status, reasons }
}

async function expectNotReady(reason: RegExp): Promise<void> {
  for (const opsUrl of Object.values(installation.opsUrls)) {
    await eventually(async () =>
      expect(await readReady(opsUrl)).toEqual({
        status: 503,
        reasons: expect.arrayContaining([expect.stringMatching(reason)]) as string[],
      }),
    )
    expect(sumOf([await scrape(opsUrl)], 'sluice_registry_lost')).toBe(1)
  }
}

/** Empties Redis when ClickHouse knows the installation. */
async function loseData(): Promise<void> {
  await eventually(async () =>
    expect(await select(installation.clickhouse, 'SELECT id FROM installations')).toHaveLength(1),
  )
  await redis.flushall()
}

async function expectReady(): Promise<void> {
  for (const opsUrl of Object.values(installation.opsUrls)) {
    await eventually(async () => expect((await readReady(opsUrl)).status).toBe(200))
    expect(sumOf([await scrape(opsUrl)], 'sluice_registry_lost')).toBe(0)
  }
  expect((await postLogs(installation, entry)).status).toBe(202)
  expect((await sendUnknown()).status).toBe(401)
}

it('no key is judged by an emptied Redis, until the projects are imported', async () => {
  await expectReady()
  await loseData()
  expect((await sendUnknown()).status).toBe(503)
  // A valid key is trusted for three seconds.
  await eventually(async () => {
    const { status, headers } = await postLogs(installation, entry)
    expect([status, headers.get('retry-after')]).toEqual([503, '1'])
  })
  await expectNotReady(LOST)
  expect((await sendUnknown()).status).toBe(503)
  for (const { logFile } of [installation.processes.api, installation.processes.worker]) {
    const errors = Object.entries(scanLogs([logFile]).errors).filter(([message]) => LOST.test(message))
    expect(errors.map(([, lines]) => lines)).toEqual([1])
  }
  const { stdout } = await projects('import', backupFile)
  expect(stdout).toContain('Imported the project demo with 1 keys.')
  await expectReady()
})

it('projects that were created in an emptied Redis count when an operator accepts them', async () => {
  await loseData()
  await expectNotReady(LOST)
  await projects('create', 'other')
  await expectNotReady(FOREIGN)
  expect((await sendUnknown()).status).toBe(503)
  await projects('accept')
  for (const opsUrl of Object.values(installation.opsUrls))
    await eventually(async () => expect((await readReady(opsUrl)).status).toBe(200))
  expect((await sendUnknown()).status).toBe(401)
  expect((await postLogs(installation, entry)).status).toBe(401)
})

it('a new installation is ready without a project', async () => {
  const { supervisor, redisUrl, clickhouse } = installation
  const options = { redisUrl, prefix: 'new' }
  const api = await startApi(supervisor, { ...options, name: 'api-new' })
  const worker: App = await startWorker(supervisor, { ...options, name: 'worker-new', clickhouse })
  expect((await sendUnknown(api.url)).status).toBe(503)
  const apiKey = await withRegistry(options, async (registry) => {
    await registry.projects.create('first')
    return (await registry.keys.create('first')).key
  })
  expect((await postLogs({ apiUrl: api.url, apiKey }, entry)).status).toBe(202)
  expect((await sendUnknown(api.url)).status).toBe(401)
  for (const { opsUrl } of [api, worker]) expect((await readReady(opsUrl)).status).toBe(200)
})
