// A setup file of vitest: it fails a test file that leaves timers, sockets, servers or child processes open.
import { afterAll, afterEach, vi } from 'vitest'

// Tests may replace the global one by fake timers.
const { setTimeout } = globalThis

/** Long enough for the closing handshakes of connections on a busy machine. Only a file with a leak waits this long. */
const GRACE_MS = 20_000
const POLL_MS = 20
/** Disables vitest's timeout of the hook: its timer would count as open. */
const NO_TIMEOUT = 0

// Node opens the standard streams at the first access, for example when a dependency imports `node:process`.
void [process.stdin, process.stdout, process.stderr]
const before = openResources()

// A test that fails before it restores the timers must not stop the files that share its process.
afterEach(() => void vi.useRealTimers())

// Hooks run in reverse order: this one runs last.
afterAll(async () => {
  const giveUpAtMs = performance.now() + GRACE_MS
  for (let leaks = findLeaks(); leaks.length > 0; leaks = findLeaks()) {
    if (performance.now() >= giveUpAtMs)
      throw new Error(`the test file leaves open: ${[...leaks, ...openSockets()].join(', ')}`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}, NO_TIMEOUT)

/** How often each kind of resource keeps the process alive, such as `Timeout`, `TCPSocketWrap` or `ProcessWrap`. */
function openResources(): ReadonlyMap<string, number> {
  const kinds = Map.groupBy(process.getActiveResourcesInfo(), (kind) => kind)
  return new Map([...kinds].map(([kind, all]) => [kind, all.length]))
}

/** What is open and was not before. */
function findLeaks(): string[] {
  return [...openResources()].flatMap(([kind, count]) => {
    const leaked = count - (before.get(kind) ?? 0)
    return leaked > 0 ? [`${leaked} ${kind}`] : []
  })
}

interface ReportedHandle {
  readonly type: string
  readonly is_active: boolean
  readonly localEndpoint?: { readonly port: number } | null
  readonly remoteEndpoint?: { readonly port: number } | null
}

/** @returns the ports of each open TCP socket, such as `44438 → 6379`: they tell whose connection leaks */
function openSockets(): string[] {
  // Otherwise Node asks DNS for the names of the hosts.
  Object.assign(process.report, { excludeNetwork: true })
  const { libuv } = process.report.getReport() as unknown as { readonly libuv: readonly ReportedHandle[] }
  return libuv
    .filter(({ type, is_active: isActive }) => type === 'tcp' && isActive)
    .map(
      ({ localEndpoint, remoteEndpoint }) => `${localEndpoint?.port ?? '?'} → ${remoteEndpoint?.port ?? '?'}`,
    )
}
