// Runs the tests of one level, and says at the end what it did not run:
//   node tools/test.ts test [FILTER…]      checks, unit and integration tests; with filters, only the tests of these files
//   node tools/test.ts system [FILTER…]    tests that start, kill and disconnect processes
//   node tools/test.ts release [PART…]     tests that need other programs, each part with those that can be installed
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SuiteName } from '../test/suites.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = join(root, 'node_modules/.cache')
const path = `${join(root, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}`

/** One part of the release tests. */
interface Part {
  readonly name: string
  readonly suites: readonly SuiteName[]
  readonly filters?: readonly string[]
  /** Downloads, unpacks or compiles what the part needs. If it fails, the part is skipped. */
  readonly prepare?: readonly string[]
  /** Folders of the cache that are put at the start of the PATH. */
  readonly path?: readonly string[]
  readonly wrapper?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

const parts: readonly Part[] = [
  { name: 'power', suites: ['power'], prepare: ['tools/can-mount.sh'] },
  {
    name: 'containers',
    suites: ['integration', 'containers'],
    prepare: ['tools/has-images.sh'],
    // The tests remove their containers themselves. Testcontainers' cleaner (Ryuk) would require another image.
    env: { SLUICE_TEST_SERVICES: 'containers', TESTCONTAINERS_RYUK_DISABLED: 'true' },
  },
  // The nginx of Debian 12 does not resolve names again.
  {
    name: 'proxy',
    suites: ['proxy'],
    prepare: ['tools/newer-nginx.sh', `${cache}/nginx`],
    path: ['nginx/bin'],
  },
  {
    name: 'explorer',
    suites: ['browser'],
    prepare: ['tools/chromium.sh', `${cache}/chromium`],
    path: ['chromium/bin'],
  },
  // The Redis of Debian 12 has no WAITAOF.
  ...['redis8', 'valkey8'].map((server): Part => ({
    name: `failover-${server}`,
    suites: ['system'],
    filters: ['test/failover', 'test/scaling/replicated-redis'],
    prepare: ['tools/newer-redis.sh', `${cache}/redis`],
    path: [`redis/${server}`],
  })),
  {
    name: 'packages',
    suites: ['packed'],
    prepare: ['tools/other-runtimes.sh', `${cache}/runtimes`],
    path: ['runtimes/bin'],
  },
  {
    name: 'monitoring',
    suites: ['monitoring'],
    prepare: ['tools/unpack-packages.sh', `${cache}/prometheus`, 'trixie', 'prometheus'],
    path: ['prometheus/root/usr/bin'],
  },
  // The Collector takes minutes to compile, so it is used only if tools/collector.sh has compiled it before.
  {
    name: 'sources',
    suites: ['sources'],
    prepare: ['tools/source-programs.sh', cache],
    path: ['syslog/bin', 'collector'],
  },
  {
    name: 'deploy',
    suites: ['deploy'],
    prepare: ['tools/with-deploy-tools.sh', 'true'],
    wrapper: ['tools/with-deploy-tools.sh'],
  },
]
const PREPARE_MS_MAX = 480_000

const checks = [
  ['oxfmt', '--check', '.'],
  ['oxlint', '--deny-warnings', '--report-unused-disable-directives'],
  ['tsc', '--noEmit'],
  // In the browser, with its types and JSX.
  ['tsc', '--noEmit', '-p', 'apps/explorer'],
  ['knip', '--no-progress'],
] as const

interface Outcome {
  readonly passed: boolean
  readonly output: string
}

/** Runs a command next to others. Preparations take only what is idle of the processor. */
function capture(command: readonly string[], priority: number, msMax?: number): Promise<Outcome> {
  const [name = '', ...args] = command
  const child = spawn(name, args, {
    cwd: root,
    env: { ...process.env, PATH: path },
    ...(msMax === undefined ? {} : { timeout: msMax }),
  })
  if (child.pid !== undefined) setPriority(child.pid, priority)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => {
      output += String(data)
    })
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ passed: false, output: error.message }))
    child.on('close', (code) => resolve({ passed: code === 0, output }))
  })
}

async function runChecks(): Promise<void> {
  const outcomes = await Promise.all(
    checks.map((command) => capture(command, constants.priority.PRIORITY_NORMAL)),
  )
  const failed = outcomes.filter(({ passed }) => !passed)
  for (const { output } of failed) console.error(output)
  if (failed.length > 0) process.exit(1)
}

/** Ends this process if a test fails, so that the failures are the end of the output. */
function runVitest(names: readonly SuiteName[], filters: readonly string[], part?: Part): void {
  const projects = names.flatMap((name) => ['--project', name])
  const [command = '', ...args] = [...(part?.wrapper ?? []), 'vitest', 'run', ...projects, ...filters]
  const folders = (part?.path ?? []).map((folder) => `${join(cache, folder)}:`).join('')
  const { status } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...part?.env, PATH: `${folders}${path}` },
  })
  if (status !== 0) process.exit(status ?? 1)
}

async function runParts(names: readonly string[]): Promise<void> {
  const unknown = names.find((name) => parts.every((part) => part.name !== name))
  if (unknown !== undefined)
    throw new Error(`no part is called ${unknown}: ${parts.map(({ name }) => name).join(', ')}`)
  const chosen = parts.filter(({ name }) => names.length === 0 || names.includes(name))
  mkdirSync(cache, { recursive: true })
  const preparations = new Map<string, Promise<Outcome>>()
  for (const { prepare = ['true'] } of chosen) {
    const key = prepare.join(' ')
    if (!preparations.has(key))
      preparations.set(key, capture(prepare, constants.priority.PRIORITY_LOW, PREPARE_MS_MAX))
  }
  const skipped: string[] = []
  for (const part of chosen) {
    const outcome = await preparations.get((part.prepare ?? ['true']).join(' '))
    if (outcome?.passed === true) runVitest(part.suites, part.filters ?? [], part)
    else skipped.push(`${part.name}: ${outcome?.output.trim().split('\n').at(-1) ?? ''}`)
  }
  console.log(['\nNot run:', ...skipped.map((line) => `  ${line}`)].join('\n'))
}

const [level, ...filters] = process.argv.slice(2)
if (level === 'test') {
  if (filters.length === 0) await runChecks()
  runVitest(['unit', 'integration'], filters)
  console.log(`
Not run: tests that start, kill and disconnect processes   npm run test:system
         tests that need other programs                    npm run test:release
         minutes to hours of faults, fuzzing, load         npm run lab`)
} else if (level === 'system') {
  runVitest(['system'], filters)
} else if (level === 'release') {
  await runParts(filters)
} else {
  throw new Error('usage: node tools/test.ts test|system|release [FILTER…]')
}
