/** What tells a browser from other runtimes, of the global object. */
export interface GlobalScope {
  readonly window?: { readonly document?: unknown } | undefined
  readonly importScripts?: unknown
  readonly navigator?: { readonly userAgent?: string } | undefined
  readonly Deno?: unknown
  readonly Bun?: unknown
}

/** Whether the code runs in a page or in a web worker, where users can read every value of the program. */
export function isBrowser({ window, importScripts, navigator, Deno, Bun }: GlobalScope): boolean {
  if (window?.document !== undefined) return true
  // Cloudflare, Deno and Bun run code on servers, in scopes that resemble web workers.
  const isServer = Deno !== undefined || Bun !== undefined || navigator?.userAgent === 'Cloudflare-Workers'
  return typeof importScripts === 'function' && !isServer
}
