import { defineConfig } from 'vitest/config'
import { PATIENCE_MS } from './test/harness/src/waiting.ts'
import { suites } from './test/suites.ts'

const filesOf = (suffix: string): string[] =>
  ['apps', 'packages', 'test'].map((folder) => `${folder}/**/*${suffix}.test.ts`)

export default defineConfig({
  test: {
    // No test depends on the mocks or the environment variables of another test.
    restoreMocks: true,
    unstubEnvs: true,
    // Most files wait more than they compute, also on two cores.
    maxWorkers: 3,
    projects: Object.entries(suites).map(([name, options]) => ({
      test: {
        name,
        include: filesOf(name === 'unit' ? '' : `.${name}`),
        exclude: [
          '**/node_modules/**',
          ...(name === 'unit' ? Object.keys(suites).flatMap((other) => filesOf(`.${other}`)) : []),
        ],
        // Only for tests that stall, and for events that never come: a busy machine takes many times as long as an idle one.
        testTimeout: 240_000,
        expect: { poll: { timeout: PATIENCE_MS, interval: 20 } },
        setupFiles: ['test/harness/src/leak-check.ts', 'test/harness/src/patience.ts'],
        ...options,
      },
    })),
  },
})
