import type { ClickHouseClient } from '@sluice/runtime'
import { pause } from '../chaos/pause.ts'
import { Connection } from './connection.ts'

/** The project of the sentinels, and of nothing else. */
export const sentinelProject = 'sentinels'

const ENTRIES_A_REQUEST = 3
const ANSWER_DEADLINE_MS = 20_000
/** Enough that hardly a chunk of fuzzed rows is without a sentinel, and little beside them. */
const INTERVAL_MS = 10

interface Sentinel {
  readonly level: string
  readonly message: string
  readonly service: string
  readonly stack: string
  readonly url: string
  readonly metadata: string
}

/** The sentinel of a number. What it holds would show a row that was cut, joined to another, or escaped twice. */
function sentinel(number: number): Sentinel {
  return {
    level: number % 2 === 0 ? 'info' : 'error',
    message: `sentinel ${number} \t \n \\ \\N \0 " 😀 ${'é'.repeat(number % 50)}`,
    service: `service-${number % 7}`,
    stack: number % 3 === 0 ? `Error: ${number}\n\tat a\\b` : '',
    url: number % 5 === 0 ? `https://example.com/${number}?a=\\t` : '',
    metadata: `{"number":${number},"a\\"b":9007199254740993,"\\\\":[null,{"x":1e400}],"text":"\\t\\n\\\\"}`,
  }
}

/** Known good entries that are sent all along, each beside whatever is sent then. */
export class Sentinels {
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
      this.faults.push(`sentinels: ${String(error)}`)
    })
  }

  /** Resolves when those that were sent are answered, and the connection is closed. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
  }

  async #run(): Promise<void> {
    const connection = await Connection.open(this.#port)
    try {
      while (!this.#isStopped) {
        await this.#send(connection)
        await pause(INTERVAL_MS)
      }
    } finally {
      connection.destroy()
    }
  }

  async #send(connection: Connection): Promise<void> {
    const numbers = Array.from({ length: ENTRIES_A_REQUEST }, (_, i) => this.#sent + i)
    this.#sent += numbers.length
    const body = Buffer.from(`[${numbers.map((number) => sentinelJson(sentinel(number))).join(',')}]`)
    const answering = connection.answers([false], ANSWER_DEADLINE_MS)
    connection.write(
      Buffer.concat([
        Buffer.from(
          `POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${this.#apiKey}\r\n` +
            `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
        ),
        body,
      ]),
    )
    const [answer] = await answering
    const expected = JSON.stringify({ success: true, accepted: numbers.length, rejected: 0 })
    if (answer?.status !== 202 || answer.body !== expected) {
      this.faults.push(`sentinels ${numbers[0]}…: ${answer?.status} ${answer?.body.slice(0, 500)}`)
    }
  }

  /** Compares all that were sent with what is stored: each is there once, as it was sent. */
  async compare(client: ClickHouseClient): Promise<string[]> {
    const result = await client.query({
      query: `SELECT level, message, service, stack, url, metadata_text AS metadata FROM logs WHERE project_id = {project: String}`,
      query_params: { project: sentinelProject },
      format: 'JSONEachRow',
    })
    const stored = await result.json<Sentinel>()
    const expected = new Set(Array.from({ length: this.#sent }, (_, number) => keyOf(sentinel(number))))
    const faults: string[] = []
    for (const row of stored) {
      if (!expected.delete(keyOf(row)))
        faults.push(`a row that is no sentinel, or is there twice: ${JSON.stringify(row)}`)
    }
    for (const key of expected) faults.push(`a sentinel is not there: ${key}`)
    return faults
  }
}

function sentinelJson({ metadata, ...fields }: Sentinel): string {
  return `${JSON.stringify(fields).slice(0, -1)},"metadata":${metadata}}`
}

function keyOf({ level, message, service, stack, url, metadata }: Sentinel): string {
  return JSON.stringify([level, message, service, stack, url, metadata])
}
