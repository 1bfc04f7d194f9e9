import { eventually, postLogs } from '@sluice/harness'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { type ProcessReport, readProcesses } from '@sluice/ops'
import { queueNames } from '@sluice/queue'
import { connectRedis, type RedisConnection } from '@sluice/runtime'
import { hostname } from 'node:os'
import { zstdDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runStatus } from './sluice-command.ts'

const SECRET = 'hunter2-in-a-message'

let installation: Installation
let redis: RedisConnection

beforeAll(async () => {
  installation = await startTestInstallation()
  redis = connectRedis(installation.redisUrl, { failFast: false })
})

afterAll(async () => {
  redis?.disconnect()
  await installation?.stop()
})

const processes = (): Promise<ProcessReport[]> => readProcesses(redis, installation.prefix)

it('`sluice status` shows both processes, and the lag of what was stored', async () => {
  expect((await postLogs(installation, { level: 'info', message: 'm' })).status).toBe(202)
  await eventually(async () => {
    const { status, code } = await runStatus(installation)
    expect(code).toBe(0)
    expect(status).toMatchObject({
      queue: { rows: 0, waiting: 0, inHand: 0, failed: 0, rates: { added: 0, inserted: 0 } },
      deadLetters: { total: 0, today: 0 },
      lag: { chunks: 1, meanS: expect.any(Number) as number, maxS: expect.any(Number) as number },
      processes: [
        { role: 'api', host: hostname(), pid: installation.processes.api.pid },
        { role: 'worker', host: hostname(), pid: installation.processes.worker.pid, chunksHeld: 0 },
      ],
      errors: [],
    })
  })
  for (const { notReady } of await processes()) expect(notReady).toBeUndefined()
})

it('no page of the ops server has a part of a chunk that waits', async () => {
  installation.processes.worker.kill('SIGSTOP')
  try {
    expect((await postLogs(installation, { level: 'info', message: SECRET })).status).toBe(202)
    const names = queueNames(installation.prefix)
    const id = (await redis.lindex(names.waitKey, 0)) ?? ''
    const { frame } = JSON.parse((await redis.hget(names.jobKey(id), 'data')) ?? '') as { frame: string }
    expect(zstdDecompressSync(Buffer.from(frame, 'base64')).toString()).toContain(SECRET)
    for (const path of ['/readyz', '/metrics', '/overload']) {
      const text = await (await fetch(`${installation.opsUrls.api}${path}`)).text()
      for (const secret of [
        SECRET,
        Buffer.from(SECRET).toString('base64').slice(2, 20),
        frame,
        frame.slice(16, 32),
      ])
        expect(text).not.toContain(secret)
    }
  } finally {
    installation.processes.worker.kill('SIGCONT')
  }
})
