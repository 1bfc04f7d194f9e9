import type { ApiKeyRecord, ApiKeys } from '@sluice/projects'
import { setImmediate as turn } from 'node:timers/promises'

interface Waiting {
  readonly keyHash: string
  readonly resolve: (record: ApiKeyRecord | undefined) => void
  readonly reject: (error: unknown) => void
}

/**
 * Looks up all keys of one turn of the event loop in one round trip. While clients guess keys, a lookup then costs Redis a fraction
 * of what a separate command costs, and there is no need to look up only some of the keys. The caller limits their number.
 */
export class KeyLookups {
  readonly #keys: Pick<ApiKeys, 'findMany'>
  #gathered: Waiting[] = []

  constructor(keys: Pick<ApiKeys, 'findMany'>) {
    this.#keys = keys
  }

  /** Rejects with the registry's error. */
  find(keyHash: string): Promise<ApiKeyRecord | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<ApiKeyRecord | undefined>()
    if (this.#gathered.push({ keyHash, resolve, reject }) === 1) void this.#send()
    return promise
  }

  async #send(): Promise<void> {
    await turn()
    const gathered = this.#gathered
    this.#gathered = []
    try {
      const records = await this.#keys.findMany(gathered.map(({ keyHash }) => keyHash))
      for (const [index, { resolve }] of gathered.entries()) resolve(records[index])
    } catch (error) {
      for (const { reject } of gathered) reject(error)
    }
  }
}
