// `npm run lab -- NAME [options]`: starts a benchmark, a chaos run, a drill or a simulation. Without a name it lists them.
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

/** By name: the entry file, and what it does. */
const lab: Readonly<Record<string, readonly [entry: string, description: string]>> = {
  bench: ['bench/src/main.ts', 'throughput, latency and CPU per entry, next to one BullMQ job per entry'],
  clients: ['bench/src/clients/main.ts', 'what one client gets, and what 16, 64 and 256 get'],
  shapes: [
    'bench/src/shapes/main.ts',
    'what bodies of other encoders cost the API, next to those of JSON.stringify',
  ],
  senders: ['bench/src/senders/main.ts', 'what a call of the TypeScript client costs'],
  hostile: ['bench/src/hostile/main.ts', 'what hostile clients cost the API, and what another project gets'],
  rejected: [
    'bench/src/rejected/main.ts',
    'what one worker stores while ClickHouse rejects some rows, and what another project notices',
  ],
  search: [
    'bench/src/search/main.ts',
    'what searches take in a large table, and what each index costs an insert',
  ],
  readers: [
    'bench/src/readers/main.ts',
    'what viewers of the live tail wait, what readers cost, and what they leave to ingestion',
  ],
  explorer: [
    'apps/explorer/test/figures/main.ts',
    'the heap of a page that follows, and its frames while it is scrolled',
  ],
  soak: ['bench/src/soak/main.ts', 'a steady load for an hour: what grows is a leak'],
  chaos: ['test/chaos/main.ts', 'random faults under load, then every entry is accounted for'],
  failover: ['test/failover/main.ts', 'failovers of Redis under load'],
  collector: ['test/collector/main.ts', 'kills behind an OpenTelemetry Collector; first: tools/collector.sh'],
  libraries: [
    'test/libraries/main.ts',
    'what the logging libraries of docs/sources lose while the API is killed',
  ],
  upgrade: ['test/upgrade/main.ts', 'an upgrade from another version and a rollback, under load and kills'],
  drill: ['test/drill/main.ts', 'an operator practises a runbook under load'],
  simulate: ['test/simulator/main.ts', 'random schedules of requests and faults against simulated servers'],
  screenshots: ['apps/explorer/test/screenshots.ts', 'makes the pictures of the explorer in docs/images'],
  fuzz: ['test/fuzz/main.ts', 'invalid requests of every kind'],
}

const [name, ...options] = process.argv.slice(2)
const found = lab[name ?? '']
if (found === undefined || process.execve === undefined) {
  const lines = Object.entries(lab).map(([each, [, description]]) => `  ${each.padEnd(11)} ${description}\n`)
  process.stderr.write(
    `npm run lab -- NAME [options], with --help for the options of one\n\n${lines.join('')}`,
  )
  process.exit(name === undefined ? 0 : 1)
}
const root = fileURLToPath(new URL('..', import.meta.url))
// Where tools/collector.sh puts the Collector.
const path = [join(root, 'node_modules/.cache/collector'), process.env['PATH']].join(delimiter)
// The run replaces this process, so it gets the signals of the terminal and of npm.
process.execve(process.execPath, [process.execPath, join(root, found[0]), ...options], {
  ...process.env,
  PATH: path,
})
