import { entryText, eventually, HttpConnection, postText } from '@sluice/harness'
import { scrape, sumOf } from '@sluice/harness/metrics'
import { startTestInstallation } from '@sluice/harness/test-installation'
import { type Installation, startApi } from '@sluice/local'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { allEnd, descendantsOf } from '../packages/local/test/processes.ts'

let installation: Installation

beforeAll(async () => {
  installation = await startTestInstallation({
    api: { environment: { API_PROCESSES: '2' } },
    worker: { environment: { WORKER_PROCESSES: '2' } },
  })
})
afterAll(() => installation?.stop())

/** The copies that a process runs. Its guard is a shell. */
const copiesOf = (role: 'api' | 'worker') =>
  descendantsOf(installation.processes[role].pid).filter(({ command }) => !command.startsWith('/bin/sh'))

/** Sends an entry over a connection of its own. */
async function send(): Promise<void> {
  const connection = await HttpConnection.open(Number(new URL(installation.apiUrl).port))
  connection.write(postText(installation.apiKey, entryText))
  await eventually(async () => expect(connection.responses.map(({ status }) => status)).toEqual([202]))
  connection.destroy()
}

it('processes share a port and the work, and one ops server has the state and the metrics of all', async () => {
  await eventually(async () => {
    await send()
    const page = await scrape(installation.opsUrls.api)
    for (const process of [1, 2])
      expect(
        sumOf([page], 'sluice_entries_accepted_total', `process="${process}"`),
        `${process}`,
      ).toBeGreaterThan(0)
  })
  for (const role of ['api', 'worker'] as const) {
    expect(copiesOf(role)).toHaveLength(2)
    const response = await fetch(`${installation.opsUrls[role]}/readyz`)
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ processes: [{ status: 'ok' }, { status: 'ok' }] })
  }
})

it.each(['1', '2'])('%s other processes cannot share the port', async (count) => {
  const { supervisor, redisUrl, prefix, apiUrl } = installation
  const { port } = new URL(apiUrl)
  const environment = { API_PROCESSES: count }
  const options = { redisUrl, prefix, name: `other-${count}`, port: Number(port), environment }
  await expect(startApi(supervisor, options)).rejects.toThrow(
    `listen EADDRINUSE: address already in use 127.0.0.1:${port}: choose another address or port`,
  )
})

it.each([
  ['SIGTERM', 'the process', { code: 0, signal: null }],
  ['SIGKILL', 'the process', { code: null, signal: 'SIGKILL' }],
  ['SIGKILL', 'a copy', { code: 1, signal: null }],
] as const)('%s of %s ends all', async (signal, target, exit) => {
  const { api } = installation.processes
  const copies = copiesOf('api')
  expect(copies).toHaveLength(2)
  process.kill((target === 'a copy' ? copies[0]?.pid : api.pid) ?? 0, signal)
  expect(await api.exited).toEqual(exit)
  await allEnd(copies)
  await api.start()
  await send()
})
