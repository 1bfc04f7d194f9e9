// Measures what hostile clients cost an API process, and what another project gets meanwhile.
import { CommandLine } from '@sluice/harness/command-line'
import { pause, postLogs } from '@sluice/harness'
import { type Installation, provisionProject, startInstallation, withRegistry } from '@sluice/local'
import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { LoadProcess } from '../load/load-process.ts'
import { acceptedPerS, describeRejected, type Progress } from '../load/protocol.ts'
import { machineTimes, sizeOf } from '../measure/process-meter.ts'
import { readNames, readPositive } from '../options.ts'
import type { Orders } from './attackers-main.ts'
import { type Attack, attacks, entry } from './attacks.ts'

const commandLine = new CommandLine(`npm run lab -- hostile -- [options]

  --only LIST        comma-separated; default all of:
                     pages    11 connections, each with 2,000 pipelined requests for the largest page, which read nothing
                     heads    200 connections with 64 KB of the shortest pipelined requests behind such a page, which read nothing
                     bodies   200 connections, each with a body of 5 MiB that lacks its last byte
                     zstd     64 connections that send bodies of 5 MiB, each of them 600 bytes as zstd
                     costly   32 connections that send bodies of many small parts, as zstd
                     empty    16 connections that send empty batches with new idempotency keys
                     guesses  16 connections that guess keys
                     slow     10,000 connections that send a head or a body of 8 KB slowly
  --seconds N        length of each measurement; default 15
  --together N       all of them at once, for N minutes, with 50,000 entries per second of another project. The attackers have one
                     project with 1,000 entries and 2 MB per second, instead of four without limits
  --connections N    connections of slow; default 10,000
  --old-space-mb N   --max-old-space-size of the API
  --help             prints this text
`)
const values = commandLine.read({
  only: { type: 'string', multiple: true },
  seconds: { type: 'string', default: '15' },
  together: { type: 'string' },
  connections: { type: 'string', default: '10000' },
  'old-space-mb': { type: 'string' },
})
const names = readNames(commandLine, '--only', values.only, Object.keys(attacks), (name) => name)
const minutes =
  values.together === undefined ? undefined : readPositive(commandLine, '--together', values.together)
const windowMs = readPositive(commandLine, '--seconds', values.seconds) * 1_000
const slowConnections = readPositive(commandLine, '--connections', values.connections)
const oldSpaceMb = values['old-space-mb']

/** A sample of the descriptors of 10,000 connections takes milliseconds, and holds a lock that the API needs. */
const SAMPLE_INTERVAL_MS = { each: 100, together: 1_000 } as const
/** See autogroup in sched(7): from 0, the default, to 19. */
const OTHER_MACHINES_NICE = 19
/** The interval of the posts of the other project, under one attack. */
const POST_INTERVAL_MS = 500
const OTHER_LOAD = { loop: 'open', connections: 256, entriesPerS: 50_000 } as const
const OTHER_REQUESTS = [{ share: 1, entries: 100 }]
const SEED = 42
const ATTACK_AFTER_MS = 2_000
const BYTES_PER_MB = 1_048_576

const installation = await startInstallation({
  api: {
    environment: oldSpaceMb === undefined ? {} : { NODE_OPTIONS: `--max-old-space-size=${oldSpaceMb}` },
  },
})
try {
  await (minutes === undefined ? measureEach() : measureTogether(minutes))
} finally {
  await installation.stop()
}
process.exit()

async function measureEach(): Promise<void> {
  console.log(
    'attack   before MB   most MB   after MB   descriptors   closed   rejected   other project: accepted   failed   slowest ms',
  )
  // One project alone must not take what is left for the others.
  const keys = await createKeys(['a', 'b', 'c', 'd'])
  for (const [name, attack] of chosenAttacks())
    console.log(`${name.padEnd(7)}  ${await measure(attack, keys)}`)
}

async function measureTogether(durationMin: number): Promise<void> {
  const keys = await createKeys(['a'], { entriesPerSecond: 1_000, bytesPerSecond: 2_000_000 })
  const generator = new LoadProcess()
  // In a session of its own: Linux first divides the processors among sessions.
  const attackers = fork(fileURLToPath(new URL('attackers-main.ts', import.meta.url)), { detached: true })
  try {
    lowerPriority(attackers.pid)
    lowerPriority(installation.processes.clickhouse.pid)
    lowerPriority(installation.processes.worker.pid)
    const url = `${installation.apiUrl}/v1/logs`
    const { apiKey } = installation
    await generator.prepare({ url, apiKey, requests: OTHER_REQUESTS, seed: SEED })
    // Without attackers, so that the code is compiled.
    await generator.run({ ...OTHER_LOAD, durationMs: 10_000 })
    const orders: Orders = { port: apiPort(installation), keys, names, slowConnections }
    // When the connections of the generator are open: new ones wait.
    setTimeout(() => attackers.send(orders), ATTACK_AFTER_MS)
    const watch = watchMemory(SAMPLE_INTERVAL_MS.together)
    const stolenBefore = machineTimes().stolenMs
    const result = await generator.run(
      { ...OTHER_LOAD, durationMs: durationMin * 60_000 },
      reportEachMinute(watch),
    )
    if (!attackers.connected) throw new Error('the attackers have exited')
    const { p50, p99, p999, max } = result.latencyMs
    const stolenCores = (machineTimes().stolenMs - stolenBefore) / result.windowMs
    console.log(`
other project: ${Math.round(acceptedPerS(result))} entries/s, p50 ${p50} ms, p99 ${p99} ms, p99.9 ${p999} ms, slowest ${max} ms
not accepted: ${describeRejected(result) || 'none'} ${result.rejection ?? ''}
most memory of the API: ${Math.round((await watch.stop()).mostMb)} MB
cores that the host gave to other machines: ${stolenCores.toFixed(2)}`)
  } finally {
    attackers.kill()
    await generator.stop()
  }
}

/** Prints the rate of each minute, and the most memory and the slowest answer until its end. */
function reportEachMinute({ mostMb }: MemoryWatch): (progress: Progress) => void {
  console.log('minute   entries/s   most MB   slowest ms')
  let [minute, acceptedBefore] = [0, 0]
  const startedMs = performance.now()
  return ({ accepted, slowestMs }) => {
    if (performance.now() - startedMs < (minute + 1) * 60_000) return
    minute += 1
    const figures = [minute, (accepted - acceptedBefore) / 60, mostMb(), slowestMs]
    console.log(figures.map((figure) => Math.round(figure).toString().padStart(10)).join(''))
    acceptedBefore = accepted
  }
}

function chosenAttacks(): [string, Attack][] {
  return Object.entries(attacks).filter(([name]) => names.includes(name))
}

/** The keys of attackers. */
async function createKeys(
  projects: readonly string[],
  limits: { readonly entriesPerSecond?: number; readonly bytesPerSecond?: number } = {},
): Promise<string[]> {
  return withRegistry(installation, (registry) =>
    Promise.all(
      projects.map(async (name) => {
        const key = await provisionProject(registry, `hostile-${name}`)
        await registry.projects.setLimits(`hostile-${name}`, limits)
        return key
      }),
    ),
  )
}

async function measure(attack: Attack, keys: readonly string[]): Promise<string> {
  const sockets: Socket[] = []
  const before = residentMb()
  const rejected = new Set<Socket>()
  const over = AbortSignal.timeout(windowMs)
  const watch = watchMemory(SAMPLE_INTERVAL_MS.each)
  const other = postMeanwhile(over)
  await attack({ port: apiPort(installation), keys, sockets, rejected, over, slowConnections })
  const { accepted, failed, slowestMs } = await other
  const { mostMb, descriptors } = await watch.stop()
  const closed = sockets.filter(({ destroyed }) => destroyed).length
  for (const socket of sockets) socket.destroy()
  await pause(2_000)
  return [before, mostMb, residentMb(), descriptors, closed, rejected.size, accepted, failed, slowestMs]
    .map((figure) => Math.round(figure).toString().padStart(9))
    .join('')
}

/** Posts entries of another project. */
async function postMeanwhile(
  over: AbortSignal,
): Promise<Record<'accepted' | 'failed' | 'slowestMs', number>> {
  const result = { accepted: 0, failed: 0, slowestMs: 0 }
  while (!over.aborted) {
    const startedMs = performance.now()
    try {
      const { status } = await postLogs(installation, entry)
      if (status === 202) result.accepted += 1
      else result.failed += 1
    } catch {
      result.failed += 1
    }
    result.slowestMs = Math.max(result.slowestMs, performance.now() - startedMs)
    await pause(POST_INTERVAL_MS)
  }
  return result
}

interface MemoryWatch {
  readonly mostMb: () => number
  stop(): Promise<{ readonly mostMb: number; readonly descriptors: number }>
}

/** Watches the memory and the descriptors of the API. */
function watchMemory(intervalMs: number): MemoryWatch {
  const pid = apiPid(installation)
  let [mostMb, descriptors] = [0, 0]
  const over = new AbortController()
  const watch = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const { residentBytes, handles } = sizeOf([pid])
      mostMb = Math.max(mostMb, residentBytes / BYTES_PER_MB)
      descriptors = Math.max(descriptors, handles)
      await pause(intervalMs)
    }
  }
  const watching = watch()
  return {
    mostMb: () => mostMb,
    stop: async () => {
      over.abort()
      await watching
      return { mostMb, descriptors }
    },
  }
}

/** At this load, clients, workers and ClickHouse have machines of their own. Here they must not take the processors from what is measured. */
function lowerPriority(pid: number | undefined): void {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, `${OTHER_MACHINES_NICE}`)
  } catch {
    console.log(
      'Sessions have no priorities on this system: attackers, worker and ClickHouse compete with the API.',
    )
  }
}

function apiPort({ apiUrl }: Installation): number {
  return Number(new URL(apiUrl).port)
}

function apiPid({ processes }: Installation): number {
  return processes.api.pid ?? 0
}

function residentMb(): number {
  return sizeOf([apiPid(installation)]).residentBytes / BYTES_PER_MB
}
