import { Supervisor } from '@sluice/local'
import { buildTestApi } from '../../../apps/api/test/support/test-api.ts'
import { ProcessMeter } from '../measure/process-meter.ts'
import { startSluice } from '../systems.ts'
import type { Shape } from './shapes.ts'

/** An API to send to, and the CPU time that it has used. */
export interface MeasuredApi {
  /** @returns the status */
  readonly send: (shape: Shape) => Promise<number>
  readonly cpuMs: () => number
  readonly stop: () => Promise<void>
}

const keyHeaders = (key: string): Record<string, string> => ({
  authorization: `Bearer ${key}`,
  'dd-api-key': key,
})

/** An API in this process: a request is the work from the bytes of a body to the compressed rows, for a queue that stores nothing. */
export function apiHere(): MeasuredApi {
  const api = buildTestApi()
  api.queue.add = () => Promise.resolve(undefined)
  return {
    send: async ({ url, headers, body }) =>
      (await api.post(body, { url, headers: { ...keyHeaders(api.key), ...headers } })).statusCode,
    cpuMs: () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1_000
    },
    stop: () => api.close(),
  }
}

/** An API as a process of its own, with Redis, worker and ClickHouse. */
export async function apiOverHttp(): Promise<MeasuredApi> {
  const supervisor = new Supervisor()
  const system = await startSluice({ supervisor })
  const meter = new ProcessMeter(system.pids())
  return {
    send: async ({ url, headers, body }) => {
      const response = await fetch(new URL(url, system.url), {
        method: 'POST',
        headers: { ...keyHeaders(system.apiKey), ...headers },
        body,
      })
      await response.arrayBuffer()
      return response.status
    },
    cpuMs: () => meter.read(0).usage.api.cpuMs,
    stop: () => supervisor.stop(),
  }
}
