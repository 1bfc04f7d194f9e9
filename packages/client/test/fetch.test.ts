import { expectTypeOf, test } from 'vitest'
import type { ClientOptions } from '../src/index.ts'

/** Like that of a library, whose requests and responses are not those of the global `fetch`. */
type LibraryFetch = (
  url: string | URL,
  init?: {
    method?: string
    body?: Uint8Array | string | null
    signal?: AbortSignal | null
    dispatcher?: object
  },
) => Promise<{
  status: number
  headers: { get(name: string): string | null }
  body: AsyncIterable<Uint8Array>
  text(): Promise<string>
}>

// `npm run types` checks it, not the test run.
test('the global `fetch` and those of libraries are valid options', () => {
  expectTypeOf<typeof fetch>().toExtend<ClientOptions['fetch']>()
  expectTypeOf<LibraryFetch>().toExtend<ClientOptions['fetch']>()
})
