// Shortens the waits of a worker, so that a test need not wait for minutes. To be loaded before its entry file: `--import`.
import { watchLimits } from '@sluice/clickhouse'
import { workerLimits } from '../../apps/worker/src/limits.ts'

Object.assign(workerLimits, {
  giveUpMs: 2_000,
  probeIntervalMs: 1_000,
  suspendedRetryMs: 2_000,
  unknownRejectionMs: 10_000,
  // An insert that was given up arrives while the test knows of it, since it is the gate that holds it.
  insertLingerMaxMs: 8_000,
  retry: { baseMs: 100, maxMs: 1_000 },
})
// A silent connection is noticed after 5 s.
Object.assign(watchLimits, { quietMs: 1_000, intervalMs: 1_000, questionTimeoutMs: 1_500 })
