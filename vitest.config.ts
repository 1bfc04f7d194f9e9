import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

// Set by `npm run test:containers`. @sluice/harness/test-installation reads it too.
const withContainers = process.env['SLUICE_TEST_SERVICES'] === 'containers'
const everywhere = ['apps', 'packages', 'test'].map((folder) => `${folder}/**`)
const setupFiles = ['test/harness/src/leak-check.ts']

const containers: TestProjectInlineConfiguration = {
  test: {
    name: 'containers',
    include: ['test/**/*.containers.test.ts'],
    setupFiles,
    // Includes building the images: half a minute without a cache, and longer over a slow network.
    hookTimeout: 600_000,
  },
}

// Set by `npm run test:power`.
const withPowerCuts = process.env['SLUICE_TEST_POWER'] === '1'
const power: TestProjectInlineConfiguration = {
  test: { name: 'power', include: ['test/**/*.power.test.ts'], setupFiles },
}

// Set by `npm run test:proxy`.
const withProxy = process.env['SLUICE_TEST_PROXY'] === '1'
const proxy: TestProjectInlineConfiguration = {
  test: {
    name: 'proxy',
    include: ['test/**/*.proxy.test.ts'],
    setupFiles,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
}

// Set by `npm run test:slow`.
const withSlowTests = process.env['SLUICE_TEST_SLOW'] === '1'
const slow: TestProjectInlineConfiguration = {
  test: {
    name: 'slow',
    include: ['test/**/*.slow.test.ts'],
    setupFiles,
    hookTimeout: 60_000,
  },
}

// Set by `npm run test:monitoring`.
const withMonitoring = process.env['SLUICE_TEST_MONITORING'] === '1'
const monitoring: TestProjectInlineConfiguration = {
  test: {
    name: 'monitoring',
    include: ['test/**/*.monitoring.test.ts'],
    setupFiles,
    hookTimeout: 60_000,
    // Times of alerts are measured.
    fileParallelism: false,
  },
}

// Set by `npm run test:deploy`.
const withDeployTools = process.env['SLUICE_TEST_DEPLOY'] === '1'
const deploy: TestProjectInlineConfiguration = {
  test: { name: 'deploy', include: ['test/**/*.deploy.test.ts'], setupFiles, testTimeout: 60_000 },
}

// Set by `npm run test:sources`.
const withSources = process.env['SLUICE_TEST_SOURCES'] === '1'
const sources: TestProjectInlineConfiguration = {
  test: {
    name: 'sources',
    include: ['test/**/*.sources.test.ts'],
    setupFiles,
    testTimeout: 60_000,
    // Includes the download of clients.
    hookTimeout: 300_000,
    // Each file starts an installation and programs of its own.
    maxWorkers: 2,
  },
}

export default defineConfig({
  test: {
    // No test depends on the mocks or the environment variables of another test.
    restoreMocks: true,
    unstubEnvs: true,
    projects: [
      {
        test: {
          name: 'unit',
          include: everywhere.map((folder) => `${folder}/*.test.ts`),
          exclude: [
            '**/node_modules/**',
            '**/*.integration.test.ts',
            '**/*.containers.test.ts',
            '**/*.power.test.ts',
            '**/*.proxy.test.ts',
            '**/*.slow.test.ts',
            '**/*.monitoring.test.ts',
            '**/*.deploy.test.ts',
            '**/*.sources.test.ts',
          ],
          setupFiles,
          // Only for tests that stall. On a busy machine, a test may take many times as long as on an idle one.
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: everywhere.map((folder) => `${folder}/*.integration.test.ts`),
          // packages/local starts services without containers. test/delivery takes minutes, and tests the worker and not the servers. Both
          // run without this option.
          exclude: [
            '**/node_modules/**',
            ...(withContainers ? ['packages/local/**', 'test/delivery/**'] : []),
          ],
          globalSetup: ['test/harness/src/global-setup.ts'],
          setupFiles,
          testTimeout: 30_000,
          hookTimeout: 60_000,
          // On two cores, more parallel files only cause timeouts.
          maxWorkers: 2,
        },
      },
      ...(withContainers ? [containers] : []),
      ...(withPowerCuts ? [power] : []),
      ...(withProxy ? [proxy] : []),
      ...(withSlowTests ? [slow] : []),
      ...(withMonitoring ? [monitoring] : []),
      ...(withDeployTools ? [deploy] : []),
      ...(withSources ? [sources] : []),
    ],
  },
})
