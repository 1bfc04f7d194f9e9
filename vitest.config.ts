import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

// Asked for by `npm run test:containers`; test/test-services.ts reads it too.
const withContainers = process.env['SLUICE_TEST_SERVICES'] === 'containers'
const everywhere = ['apps', 'packages', 'test'].map((folder) => `${folder}/**`)

const containers: TestProjectInlineConfiguration = {
  test: {
    name: 'containers',
    include: ['test/**/*.containers.test.ts'],
    // The images are built before anything starts: half a minute without a cache, and longer where npm is far away.
    hookTimeout: 600_000,
  },
}

export default defineConfig({
  test: {
    // Rows written by hand and files of one test are no use to another: everything is reset, nothing is shared.
    restoreMocks: true,
    unstubEnvs: true,
    projects: [
      {
        test: {
          name: 'unit',
          include: everywhere.map((folder) => `${folder}/*.test.ts`),
          exclude: ['**/node_modules/**', '**/*.integration.test.ts', '**/*.containers.test.ts'],
          // For what hangs: a busy machine may take many times what a test takes alone.
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: everywhere.map((folder) => `${folder}/*.integration.test.ts`),
          // What starts services without containers is tested without them.
          exclude: ['**/node_modules/**', ...(withContainers ? ['packages/local/**'] : [])],
          globalSetup: ['test/services.ts'],
          testTimeout: 30_000,
          hookTimeout: 60_000,
          // Two cores: more files at once only make each other time out.
          maxWorkers: 2,
        },
      },
      ...(withContainers ? [containers] : []),
    ],
  },
})
