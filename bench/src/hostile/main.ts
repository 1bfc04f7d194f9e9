// `npm run lab -- hostile`: what hostile clients cost an API process, and what another project gets meanwhile.
import { CommandLine } from '@sluice/harness/command-line'
import { provisionProject, startInstallation, withRegistry } from '@sluice/local'
import { writeFileSync } from 'node:fs'
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { LoadProcess } from '../load/load-process.ts'
import { acceptedPerS, describeRejected, type Progress } from '../load/protocol.ts'
import { machineTimes, sizeOf } from '../measure/process-meter.ts'
import { readNames } from '../options.ts'
import type { Orders } from './attackers-main.ts'
import { attacks } from './attacks.ts'

const commandLine = new CommandLine(`npm run lab -- hostile [options]

  --only LIST        comma-separated; default all of:
                     pages    11 connections, each with 2,000 pipelined requests for the largest page, which read nothing
                     heads    200 connections with 64 KB of the shortest pipelined requests behind such a page, which read nothing
                     bodies   200 connections, each with a body of 5 MiB that lacks its last byte
                     zstd     64 connections that send bodies of 5 MiB, each of them 600 bytes as zstd
                     costly   32 connections that send bodies of many small parts, as zstd
                     empty    16 connections that send empty batches with new idempotency keys
                     guesses  16 connections that guess keys
                     slow     10,000 connections that send a head or a body of 8 KB slowly
  --minutes N        how long they attack, all at once; default 5
  --help             prints this text

The attackers have one project, with 1,000 entries and 2 MB per second. Another project sends 50,000 entries per second.
`)
const values = commandLine.read({
  only: { type: 'string', multiple: true },
  minutes: { type: 'string', default: '5' },
})
const names = readNames(commandLine, '--only', values.only, Object.keys(attacks))
const durationMs = commandLine.positive('minutes', values.minutes) * 60_000

/** A sample of the descriptors of 10,000 connections takes milliseconds, and holds a lock that the API needs. */
const SAMPLE_INTERVAL_MS = 1_000
/** See autogroup in sched(7): from 0, the default, to 19. */
const OTHER_MACHINES_NICE = 19
const OTHER_LOAD = { loop: 'open', connections: 256, entriesPerS: 50_000 } as const
const OTHER_REQUESTS = [{ share: 1, entries: 100 }]
const SEED = 42
const ATTACK_AFTER_MS = 2_000
const BYTES_PER_MB = 1_048_576

const installation = await startInstallation()
try {
  await measure()
} finally {
  await installation.stop()
}
process.exit()

async function measure(): Promise<void> {
  const key = await withRegistry(installation, async (registry) => {
    const created = await provisionProject(registry, 'hostile')
    await registry.projects.update('hostile', { entriesPerSecond: 1_000, bytesPerSecond: 2_000_000 })
    return created
  })
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
    const orders: Orders = { port: Number(new URL(installation.apiUrl).port), key, names }
    // When the connections of the generator are open: new ones wait.
    setTimeout(() => attackers.send(orders), ATTACK_AFTER_MS)
    const watch = watchMemory()
    const stolenBefore = machineTimes().stolenMs
    const result = await generator.run({ ...OTHER_LOAD, durationMs }, reportEachMinute(watch))
    if (!attackers.connected) throw new Error('the attackers have exited')
    const { p50, p99, p999, max } = result.latencyMs
    const stolenCores = (machineTimes().stolenMs - stolenBefore) / result.windowMs
    console.log(`
other project: ${Math.round(acceptedPerS(result))} entries/s, p50 ${p50} ms, p99 ${p99} ms, p99.9 ${p999} ms, slowest ${max} ms
not accepted: ${describeRejected(result) || 'none'} ${result.rejection ?? ''}
most memory of the API: ${Math.round(watch.mostMb())} MB
cores that the host gave to other machines: ${stolenCores.toFixed(2)}`)
    watch.stop()
  } finally {
    attackers.kill()
    await generator.stop()
  }
}

/** Prints the rate of each minute, and the most memory and the slowest response until its end. */
function reportEachMinute({ mostMb }: ReturnType<typeof watchMemory>): (progress: Progress) => void {
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

/** Watches the memory of the API. */
function watchMemory() {
  let mostBytes = 0
  const timer = setInterval(() => {
    mostBytes = Math.max(mostBytes, sizeOf([installation.processes.api.pid ?? 0]).residentBytes)
  }, SAMPLE_INTERVAL_MS)
  return { mostMb: () => mostBytes / BYTES_PER_MB, stop: () => clearInterval(timer) }
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
