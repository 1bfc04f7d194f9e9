// A setup file of vitest: it fails a test file that leaves timers, sockets, servers or child processes open.
import { afterAll, afterEach, vi } from 'vitest'
import { findLeaks, openResources, openSockets } from './open-resources.ts'

/** Long enough for the closing handshakes of connections on a busy machine. Only a file with a leak waits this long. */
const GRACE_MS = 20_000
/** Disables vitest's timeout of the hook: its timer would count as open. */
const NO_TIMEOUT = 0

// Node opens the standard streams at the first access, for example when a dependency imports `node:process`.
void [process.stdin, process.stdout, process.stderr]
const before = openResources()

// A test that fails before it restores the timers must not stop the files that share its process.
afterEach(() => void vi.useRealTimers())

// Hooks run in reverse order: this one runs last.
afterAll(async () => {
  const leaks = await findLeaks(before, GRACE_MS)
  if (leaks.length > 0)
    throw new Error(`the test file leaves open: ${[...leaks, ...openSockets()].join(', ')}`)
}, NO_TIMEOUT)
