import type { TestProjectInlineConfiguration } from 'vitest/config'

type Options = TestProjectInlineConfiguration['test']

/**
 * The suites by name. The name is the project of vitest, and the suffix of its files: `*.NAME.test.ts`. Files without such a suffix are
 * unit tests. Timeouts are only for tests that stall: on a busy machine, a test may take many times as long as on an idle one.
 */
export const suites = {
  unit: {
    // A process for each file would take longer than its tests. No file changes the modules that it imports.
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
  // One Redis and one ClickHouse serve all files. Each uses a prefix and a database of its own.
  integration: {
    isolate: false,
    globalSetup: ['test/harness/src/global-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
  // Each file starts processes of its own: installations, clusters, failing servers.
  system: {
    globalSetup: ['test/harness/src/global-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
  // The published packages, packed and installed.
  packed: { testTimeout: 120_000, hookTimeout: 120_000 },
  // Includes building the images: half a minute without a cache, and longer over a slow network.
  containers: { hookTimeout: 600_000 },
  power: {},
  proxy: { testTimeout: 60_000, hookTimeout: 60_000 },
  // Times of alerts are measured.
  monitoring: { hookTimeout: 60_000, fileParallelism: false },
  deploy: { testTimeout: 60_000 },
  // Includes the download of clients.
  sources: { testTimeout: 60_000, hookTimeout: 300_000 },
} satisfies Record<string, Options>

export type SuiteName = keyof typeof suites
