/**
 * What the client needs of a `fetch`. Not the type of the global one: those of libraries have other properties, which the client does not use.
 */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>

export interface FetchInit {
  readonly method: 'POST'
  readonly headers: Record<string, string>
  readonly body: Uint8Array<ArrayBuffer>
  readonly redirect: 'manual'
  readonly signal: AbortSignal
}

export interface FetchResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  /** Read up to a limit if it is a web stream. */
  readonly body: unknown
  text(): Promise<string>
}
