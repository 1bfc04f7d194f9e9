import type { TestProjectInlineConfiguration } from 'vitest/config'

type Options = TestProjectInlineConfiguration['test']

/**
 * The suites by name. The name is the project of vitest, and the suffix of its files: `*.NAME.test.ts`. Files without such a suffix are
 * unit tests.
 */
export const suites = {
  unit: {
    // A process for each file would take longer than its tests. No file changes the modules that it imports.
    isolate: false,
    hookTimeout: 60_000,
  },
  // One Redis and one ClickHouse serve all files. Each uses a prefix and a database of its own.
  integration: { isolate: false, globalSetup: ['test/harness/src/global-setup.ts'], hookTimeout: 120_000 },
  // Each file starts processes of its own: installations, clusters, failing servers.
  system: { globalSetup: ['test/harness/src/global-setup.ts'], hookTimeout: 120_000 },
  // A browser takes all of the processor, which other tests need.
  browser: { globalSetup: ['test/harness/src/global-setup.ts'], hookTimeout: 120_000 },
  // The published packages, packed and installed.
  packed: { testTimeout: 120_000, hookTimeout: 120_000 },
  // Includes building the images: half a minute without a cache, and longer over a slow network.
  containers: { hookTimeout: 600_000 },
  power: {},
  proxy: { hookTimeout: 60_000 },
  // Times of alerts are measured.
  monitoring: { hookTimeout: 60_000, fileParallelism: false },
  deploy: {},
  // Includes the download of clients.
  sources: { hookTimeout: 300_000 },
} satisfies Record<string, Options>

export type SuiteName = keyof typeof suites
