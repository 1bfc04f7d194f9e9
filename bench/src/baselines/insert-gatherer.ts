import type { Agent } from 'node:http'
import { postInsert, type InsertAnswer } from './insert-post.ts'

/**
 * ClickHouse's own defaults for asynchronous inserts: `async_insert_max_data_size`, `async_insert_max_query_number` and
 * `async_insert_busy_timeout_max_ms`, to which its adaptive timeout grows when inserts are frequent.
 */
export const gatherLimits = { bytesMax: 10_485_760, insertsMax: 450, waitMs: 200 } as const

interface Waiting {
  readonly resolve: (answer: InsertAnswer) => void
  readonly reject: (error: unknown) => void
}

/** Inserts of one query that are gathered. */
interface Gathering {
  readonly bodies: Buffer[]
  readonly waiting: Waiting[]
  readonly timer: NodeJS.Timeout
  bytes: number
}

/** An insert as it came over HTTP: its address with the query in it, its credentials, its rows. */
export interface Insert {
  readonly url: string
  readonly authorization: string
  readonly body: Buffer
}

/**
 * Gathers the inserts of many requests into one, as ClickHouse's queue of asynchronous inserts does: inserts of the same
 * query and settings join, their bytes unread, until there are enough of them or the first has waited long enough. Each
 * is answered with what became of all.
 */
export class InsertGatherer {
  readonly #agent: Agent
  readonly #clickhouseUrl: string
  readonly #gatherings = new Map<string, Gathering>()

  constructor(clickhouseUrl: string, agent: Agent) {
    this.#clickhouseUrl = clickhouseUrl
    this.#agent = agent
  }

  insert({ url, authorization, body }: Insert): Promise<InsertAnswer> {
    const address = new URL(url, this.#clickhouseUrl)
    // Every request has an id of its own.
    address.searchParams.delete('query_id')
    const key = `${authorization} ${address.href}`
    return new Promise((resolve, reject) => {
      const gathering = this.#gatherings.get(key) ?? this.#open(key, address, authorization)
      gathering.bodies.push(body)
      gathering.waiting.push({ resolve, reject })
      gathering.bytes += body.length
      const isFull =
        gathering.bytes >= gatherLimits.bytesMax || gathering.waiting.length >= gatherLimits.insertsMax
      if (isFull) this.#send(key, address, authorization)
    })
  }

  #open(key: string, address: URL, authorization: string): Gathering {
    const timer = setTimeout(() => this.#send(key, address, authorization), gatherLimits.waitMs)
    const gathering: Gathering = { bodies: [], waiting: [], timer, bytes: 0 }
    this.#gatherings.set(key, gathering)
    return gathering
  }

  #send(key: string, address: URL, authorization: string): void {
    const gathering = this.#gatherings.get(key)
    if (gathering === undefined) return
    this.#gatherings.delete(key)
    clearTimeout(gathering.timer)
    void this.#insertAll(gathering, {
      url: address.href,
      authorization,
      body: Buffer.concat(gathering.bodies),
    })
  }

  async #insertAll({ waiting }: Gathering, insert: Insert): Promise<void> {
    try {
      const answer = await postInsert(insert, this.#agent)
      for (const { resolve } of waiting) resolve(answer)
    } catch (error) {
      for (const { reject } of waiting) reject(error)
    }
  }
}
