import { pause } from '@sluice/harness'

export interface RecordOptions {
  /** What each message starts with. */
  readonly label: string
  readonly records: number
  readonly recordsPerRequest: number
  /** On average. */
  readonly recordsPerSecond: number
  /** Called with the number of records that the Collector has acknowledged, or that are written. */
  readonly progress: (records: number) => void
}

export interface GeneratorOptions extends RecordOptions {
  /** The Collector. */
  readonly url: string
  readonly connections: number
}

const MS_PER_SECOND = 1_000
const RETRY_PAUSE_MS = 200
const ANSWER_DEADLINE_MS = 60_000
const NS_PER_MS = 1_000_000n

/** Sends numbered records to a Collector, and sends each request until it is acknowledged. @returns how often one was repeated */
export async function generate(options: GeneratorOptions): Promise<number> {
  const { records, recordsPerRequest, recordsPerSecond, connections, progress } = options
  const startedAtMs = performance.now()
  let next = 0
  let acknowledged = 0
  let repeated = 0
  const send = async (): Promise<void> => {
    while (next < records) {
      const first = next
      const count = Math.min(recordsPerRequest, records - first)
      next += count
      await pause(startedAtMs + (first / recordsPerSecond) * MS_PER_SECOND - performance.now())
      const body = requestOf(options.label, first, count)
      while (!(await post(options.url, body))) {
        repeated += 1
        await pause(RETRY_PAUSE_MS)
      }
      acknowledged += count
      progress(acknowledged)
    }
  }
  await Promise.all(Array.from({ length: connections }, send))
  return repeated
}

async function post(url: string, body: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/v1/logs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
    })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}

function attribute(key: string, stringValue: string): unknown {
  return { key, value: { stringValue } }
}

/** An ExportLogsServiceRequest in JSON. */
function requestOf(label: string, first: number, count: number): string {
  const now = BigInt(Date.now()) * NS_PER_MS
  const logRecords = Array.from({ length: count }, (_, index) => ({
    timeUnixNano: String(now),
    severityNumber: 9,
    severityText: 'INFO',
    body: { stringValue: `${label}-${first + index}` },
    attributes: [
      attribute('http.request.method', 'GET'),
      attribute('url.path', `/orders/${first + index}`),
      attribute('user.id', `user-${index}`),
    ],
  }))
  return JSON.stringify({
    resourceLogs: [
      {
        resource: { attributes: [attribute('service.name', label), attribute('host.name', 'web-1')] },
        scopeLogs: [{ scope: { name: 'generator' }, logRecords }],
      },
    ],
  })
}
