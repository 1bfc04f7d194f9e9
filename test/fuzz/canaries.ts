import type { ClickHouseAccess } from '@sluice/clickhouse'
import { HttpConnection, pause, postText } from '@sluice/harness'
import { select } from '@sluice/harness/clickhouse'

/** The project of the canaries. No other requests use it. */
export const canaryProject = 'canaries'

const ENTRIES_PER_REQUEST = 3
const ANSWER_DEADLINE_MS = 20_000
/** Short enough that nearly every chunk of fuzzed rows has a canary, and little load compared with the fuzzed requests. */
const INTERVAL_MS = 10

interface Canary {
  readonly level: string
  readonly message: string
  readonly service: string
  readonly stack: string
  readonly url: string
  readonly metadata: string
}

/** The canary with this number. Its content reveals a row that is truncated, merged with another row, or escaped twice. */
function canary(number: number): Canary {
  return {
    level: number % 2 === 0 ? 'info' : 'error',
    message: `canary ${number} \t \n \\ \\N \0 " 😀 ${'é'.repeat(number % 50)}`,
    service: `service-${number % 7}`,
    stack: number % 3 === 0 ? `Error: ${number}\n\tat a\\b` : '',
    url: number % 5 === 0 ? `https://example.com/${number}?a=\\t` : '',
    metadata: `{"number":${number},"a\\"b":9007199254740993,"\\\\":[null,{"x":1e400}],"text":"\\t\\n\\\\"}`,
  }
}

/** Valid entries that are sent continuously, in parallel with the fuzzed requests. */
export class Canaries {
  readonly faults: string[] = []
  readonly #port: number
  readonly #apiKey: string
  #sent = 0
  #isStopped = false
  #running: Promise<void> | undefined

  constructor(port: number, apiKey: string) {
    this.#port = port
    this.#apiKey = apiKey
  }

  get sent(): number {
    return this.#sent
  }

  start(): void {
    this.#isStopped = false
    this.#running = this.#run().catch((error: unknown) => {
      this.faults.push(`canaries: ${String(error)}`)
    })
  }

  /** Resolves when all canaries have their responses, and the connection is closed. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
  }

  async #run(): Promise<void> {
    const connection = await HttpConnection.open(this.#port)
    try {
      while (!this.#isStopped) {
        await this.#send(connection)
        await pause(INTERVAL_MS)
      }
    } finally {
      connection.destroy()
    }
  }

  async #send(connection: HttpConnection): Promise<void> {
    const numbers = Array.from({ length: ENTRIES_PER_REQUEST }, (_, i) => this.#sent + i)
    this.#sent += numbers.length
    const body = `[${numbers.map((number) => canaryJson(canary(number))).join(',')}]`
    connection.write(postText(this.#apiKey, body))
    const [answer] = await connection.readResponses([false], ANSWER_DEADLINE_MS)
    const expected = JSON.stringify({ success: true, accepted: numbers.length, rejected: 0 })
    if (answer?.status !== 202 || answer.body !== expected) {
      this.faults.push(`canaries ${numbers[0]}…: ${answer?.status} ${answer?.body.slice(0, 500)}`)
    }
  }

  /** Checks that each canary is stored once, and unchanged. */
  async compare(clickhouse: ClickHouseAccess): Promise<string[]> {
    const stored = await select<Canary>(
      clickhouse,
      `SELECT level, message, service, stack, url, metadata_text AS metadata FROM logs WHERE project_id = {project: String}`,
      { project: canaryProject },
    )
    const expected = new Set(Array.from({ length: this.#sent }, (_, number) => keyOf(canary(number))))
    const faults: string[] = []
    for (const row of stored) {
      if (!expected.delete(keyOf(row))) {
        faults.push(`a row that is not a canary, or is stored twice: ${JSON.stringify(row)}`)
      }
    }
    for (const key of expected) faults.push(`a canary is missing: ${key}`)
    return faults
  }
}

function canaryJson({ metadata, ...fields }: Canary): string {
  return `${JSON.stringify(fields).slice(0, -1)},"metadata":${metadata}}`
}

function keyOf({ level, message, service, stack, url, metadata }: Canary): string {
  return JSON.stringify([level, message, service, stack, url, metadata])
}
