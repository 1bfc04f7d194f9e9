import { type ClientOptions, type CloseOptions, type FlushResult, SluiceClient } from '../../src/index.ts'
import type { DropReason, Rejection, Retry, Settlement, SluiceError } from '../../src/index.ts'
import { systemPlatform } from '../../src/platform.ts'
import { FakeFetch, pass } from './fake-fetch.ts'

/** What the hooks were called with. */
interface Reported {
  readonly rejections: Rejection[]
  readonly drops: { readonly messages: unknown[]; readonly reason: DropReason }[]
  readonly retries: Retry[]
  readonly errors: SluiceError[]
  readonly settlements: Settlement[]
}

/**
 * A client without a network. Fake timers control its clocks.
 *
 * @param random its random numbers
 */
export function fakeClient(options: Partial<ClientOptions> = {}, random: number | (() => number) = 0.5) {
  const api = new FakeFetch()
  const reported: Reported = { rejections: [], drops: [], retries: [], errors: [], settlements: [] }
  const client = new SluiceClient(
    {
      url: 'https://logs.example.com',
      apiKey: 'slk_test',
      compression: 'none',
      flushOnExit: false,
      fetch: api.fetch,
      onRejected: (rejection) => reported.rejections.push(rejection),
      onDropped: (entries, reason) => {
        const messages = entries.map(({ json }) => (JSON.parse(json) as { message: unknown }).message)
        reported.drops.push({ messages, reason })
      },
      onRetry: (retry) => reported.retries.push(retry),
      onError: (error) => reported.errors.push(error),
      onSettled: (settlement) => reported.settlements.push(settlement),
      ...options,
    },
    { ...systemPlatform(), random: typeof random === 'number' ? () => random : random },
  )
  /** Logs entries with consecutive numbers as messages. */
  let logged = 0
  const log = (count: number): void => {
    for (let i = 0; i < count; i += 1) client.info(String((logged += 1)))
  }
  /** Lets the client send them, unless they are to wait. */
  const send = async (count: number, waitMs = 0): Promise<void> => {
    log(count)
    await pass(waitMs)
  }
  /** Lets the client give up what it does not send within a second. */
  const close = async (closeOptions: CloseOptions = {}): Promise<FlushResult> => {
    const closed = client.close({ timeoutMs: 0, ...closeOptions })
    await pass(1_000)
    return closed
  }
  return { client, api, reported, log, send, close }
}

/** A fake client whose first entries are in flight. */
export async function sending(entries: number, ...options: Parameters<typeof fakeClient>) {
  const fake = fakeClient(...options)
  await fake.send(entries, 1_000)
  return fake
}
