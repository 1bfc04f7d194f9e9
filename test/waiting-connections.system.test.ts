import { eventually } from '@sluice/harness'
import { startTestInstallation } from '@sluice/harness/test-installation'
import type { Installation } from '@sluice/local'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'

/** More than the default of Node, which is 511. */
const CLIENTS = 1_500

let installation: Installation

beforeAll(async () => {
  installation = await startTestInstallation()
})

afterAll(async () => {
  await installation?.stop()
})

it('clients can connect although the process is too busy to accept them', async () => {
  const { processes, apiUrl } = installation
  processes.api.kill('SIGSTOP')
  const port = Number(new URL(apiUrl).port)
  let connected = 0
  const sockets = Array.from({ length: CLIENTS }, () =>
    connect(port, '127.0.0.1', () => {
      connected += 1
    }).on('error', () => undefined),
  )
  const systemMax = Number(await readFile('/proc/sys/net/core/somaxconn', 'utf8'))
  try {
    await eventually(async () => expect(connected).toBeGreaterThanOrEqual(Math.min(CLIENTS, systemMax)))
  } finally {
    for (const socket of sockets) socket.destroy()
    processes.api.kill('SIGCONT')
  }
})
