// Tests may replace the global one by fake timers.
const { setTimeout } = globalThis

/** How often each kind of resource keeps the process alive, such as `Timeout`, `TCPSocketWrap` or `ProcessWrap`. */
export type OpenResources = ReadonlyMap<string, number>

const POLL_MS = 20

export function openResources(): OpenResources {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}

/**
 * Waits until no more resources are open than before, or until the grace period has passed: a closed socket, a file
 * operation or an immediate needs some iterations of the event loop to disappear.
 *
 * @returns what is still open, such as `2 TCPSocketWrap`; empty if there is no leak
 */
export async function findLeaks(before: OpenResources, graceMs: number): Promise<string[]> {
  const giveUpAtMs = performance.now() + graceMs
  for (;;) {
    const leaks = [...openResources()]
      .map(([kind, count]) => ({ kind, leaked: count - (before.get(kind) ?? 0) }))
      .filter(({ leaked }) => leaked > 0)
      .map(({ kind, leaked }) => `${leaked} ${kind}`)
    if (leaks.length === 0 || performance.now() >= giveUpAtMs) return leaks
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

interface ReportedHandle {
  readonly type: string
  readonly is_active: boolean
  readonly localEndpoint?: { readonly port: number } | null
  readonly remoteEndpoint?: { readonly port: number } | null
}

/** @returns the ports of each open TCP socket, such as `44438 → 6379`: they tell whose connection leaks */
export function openSockets(): string[] {
  // Otherwise Node asks DNS for the names of the hosts.
  Object.assign(process.report, { excludeNetwork: true })
  const { libuv } = process.report.getReport() as unknown as { readonly libuv: readonly ReportedHandle[] }
  return libuv
    .filter(({ type, is_active: isActive }) => type === 'tcp' && isActive)
    .map(
      ({ localEndpoint, remoteEndpoint }) => `${localEndpoint?.port ?? '?'} → ${remoteEndpoint?.port ?? '?'}`,
    )
}
