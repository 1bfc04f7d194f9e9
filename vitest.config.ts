import { defineConfig } from 'vitest/config'

const everywhere = ['apps', 'packages', 'test'].map((folder) => `${folder}/**`)

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
          exclude: ['**/node_modules/**', '**/*.integration.test.ts'],
        },
      },
      {
        test: {
          name: 'integration',
          include: everywhere.map((folder) => `${folder}/*.integration.test.ts`),
          exclude: ['**/node_modules/**'],
          globalSetup: ['test/services.ts'],
          testTimeout: 30_000,
          hookTimeout: 60_000,
          // Two cores: more files at once only make each other time out.
          maxWorkers: 2,
        },
      },
    ],
  },
})
