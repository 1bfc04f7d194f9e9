import type { ClickHouseAccess } from '@sluice/clickhouse'
import { HttpConnection, pause, postText } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'

/** The project of the canaries. No other requests use it. */
export const canaryProject = 'canaries'

const ENTRIES_PER_REQUEST = 3
const ANSWER_DEADLINE_MS = 20_000
/** Short enough that nearly every chunk of fuzzed rows has a canary, and little load compared with the fuzzed requests. */
const INTERVAL_MS = 10

/** The canary with this number. Its content reveals a row that is truncated, merged with another row, or escaped twice. */
function canary(number: number) {
  return {
    level: number % 2 === 0 ? 'info' : 'error',
    message: `canary ${number} \t \n \\ \\N \0 " 😀 ${'é'.repeat(number % 50)}`,
    service: `service-${number % 7}`,
    stack: number % 3 === 0 ? `Error: ${number}\n\tat a\\b` : '',
    url: number % 5 === 0 ? `https://example.com/${number}?a=\\t` : '',
    metadata: `{"number":${number},"a\\"b":9007199254740993,"\\\\":[null,{"x":1e400}],"text":"\\t\\n\\\\"}`,
  }
}

function canaryJson(number: number): string {
  const { metadata, ...fields } = canary(number)
  return `${JSON.stringify(fields).slice(0, -1)},"metadata":${metadata}}`
}

/** Valid entries that are sent continuously, in parallel with the fuzzed requests. */
export class Canaries {
  readonly faults: string[] = []
  sent = 0
  readonly #port: number
  readonly #apiKey: string
  #stopping = new AbortController()
  #running: Promise<void> | undefined

  constructor(port: number, apiKey: string) {
    this.#port = port
    this.#apiKey = apiKey
  }

  start(): void {
    this.#stopping = new AbortController()
    this.#running = this.#run(this.#stopping.signal).catch((error: unknown) => {
      this.faults.push(`canaries: ${String(error)}`)
    })
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(signal: AbortSignal): Promise<void> {
    const connection = await HttpConnection.open(this.#port)
    for (; !signal.aborted; await pause(INTERVAL_MS, signal)) await this.#send(connection)
    connection.destroy()
  }

  async #send(connection: HttpConnection): Promise<void> {
    const first = this.sent
    this.sent += ENTRIES_PER_REQUEST
    const entries = Array.from({ length: ENTRIES_PER_REQUEST }, (_, i) => canaryJson(first + i))
    connection.write(postText(this.#apiKey, `[${entries.join(',')}]`))
    const [answer] = await connection.readResponses([false], ANSWER_DEADLINE_MS)
    const expected = JSON.stringify({ success: true, accepted: ENTRIES_PER_REQUEST, rejected: 0 })
    if (answer?.status !== 202 || answer.body !== expected)
      this.faults.push(`canaries ${first}…: ${answer?.status} ${answer?.body.slice(0, 500)}`)
  }

  /** Checks that each canary is stored once, and unchanged. */
  async compare(clickhouse: ClickHouseAccess): Promise<string[]> {
    const stored = await select<object>(
      clickhouse,
      `SELECT level, message, service, stack, url, metadata_text AS metadata FROM logs WHERE project_id = {project: String}`,
      { project: canaryProject },
    )
    const missing = new Set(Array.from({ length: this.sent }, (_, number) => JSON.stringify(canary(number))))
    const others = stored.map((row) => JSON.stringify(row)).filter((row) => !missing.delete(row))
    return [
      ...others.map((row) => `a row that is not a canary, or is stored twice: ${row}`),
      ...[...missing].map((row) => `a canary is missing: ${row}`),
    ]
  }
}
