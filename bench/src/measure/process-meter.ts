import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Roles } from '../systems/system.ts'
import { memoryBytes } from './process-size.ts'

/** What the processes of a role took. */
export interface Usage {
  readonly cpuMs: number
  /** The largest resident set since the meter was started. */
  readonly peakRssBytes: number
}

/** What was taken while a meter ran. */
export interface Reading {
  readonly usage: Roles<Usage>
  /** What programs that have no part in the measurement took of the machine's cores, on average. */
  readonly othersCores: number
}

/** USER_HZ, the unit of the times in /proc, is part of the kernel's interface to programs: 100 on all machines. */
const TICK_MS = 10

/**
 * Measures what the processes of a system take, from /proc: user and system time of all their threads and of the
 * children that they waited for, and the high-water mark of their memory. Each process leads a process group, and counts
 * with all of it.
 */
export class ProcessMeter {
  readonly #roles: Roles<readonly number[]>
  readonly #cpuAtStartMs: Roles<number>
  readonly #startedMs = performance.now()
  readonly #machineAtStartMs = machineCpuMs()
  readonly #ownAtStart = process.cpuUsage()

  /** Starts measuring. @param roles the process ids of each role's processes */
  constructor(roles: Roles<readonly number[]>) {
    this.#roles = roles
    const groups = readGroups()
    this.#cpuAtStartMs = mapRoles(roles, (leaders) => {
      const group = membersOf(leaders, groups)
      for (const { pid } of group) resetPeak(pid)
      return group.reduce((sum, { cpuMs }) => sum + cpuMs, 0)
    })
  }

  /**
   * What was taken from the start until now.
   *
   * @param generatorMs CPU time that the load generator took meanwhile
   */
  read(generatorMs: number): Reading {
    const groups = readGroups()
    const usage = mapRoles(this.#roles, (leaders, role) => {
      const group = membersOf(leaders, groups)
      const cpuMs = group.reduce((sum, each) => sum + each.cpuMs, 0)
      return {
        cpuMs: cpuMs - (this.#cpuAtStartMs[role] ?? 0),
        peakRssBytes: group.reduce((sum, { pid }) => sum + peakRssBytes(pid), 0),
      }
    })
    const own = process.cpuUsage(this.#ownAtStart)
    const knownMs = generatorMs + (own.user + own.system) / 1_000 + totalCpuMs(usage)
    const othersMs = machineCpuMs() - this.#machineAtStartMs - knownMs
    return { usage, othersCores: Math.max(0, othersMs) / (performance.now() - this.#startedMs) }
  }
}

function mapRoles<A, B>(roles: Roles<A>, map: (value: A, role: keyof Roles<A>) => B): Roles<B> {
  return {
    api: map(roles.api, 'api'),
    clickhouse: map(roles.clickhouse, 'clickhouse'),
    ...(roles.worker === undefined ? {} : { worker: map(roles.worker, 'worker') }),
    ...(roles.redis === undefined ? {} : { redis: map(roles.redis, 'redis') }),
  }
}

export function totalCpuMs({ api, worker, redis, clickhouse }: Roles<Usage>): number {
  return api.cpuMs + (worker?.cpuMs ?? 0) + (redis?.cpuMs ?? 0) + clickhouse.cpuMs
}

/** What all programs took of all cores since the machine was started, and what its host took away from it. */
function machineCpuMs(): number {
  // See proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal.
  const [, ...ticks] = (readFileSync('/proc/stat', 'utf8').split('\n', 1)[0] ?? '').split(/ +/).map(Number)
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = ticks
  return (user + nice + system + irq + softirq + steal) * TICK_MS
}

interface ProcessTimes {
  readonly pid: number
  readonly cpuMs: number
}

function membersOf(
  leaders: readonly number[],
  groups: ReadonlyMap<number, readonly ProcessTimes[]>,
): ProcessTimes[] {
  return leaders.flatMap((leader) => groups.get(leader) ?? [])
}

function readGroups(): Map<number, ProcessTimes[]> {
  const groups = new Map<number, ProcessTimes[]>()
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = readIfThere(`/proc/${entry}/stat`)
    // The name, in parentheses, may hold anything; the numbers follow the last one. See proc_pid_stat(5).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [, , group] = fields
    if (group === undefined) continue
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    const members = groups.get(Number(group)) ?? []
    members.push({ pid: Number(entry), cpuMs: ticks * TICK_MS })
    groups.set(Number(group), members)
  }
  return groups
}

/** Sets VmHWM back to the current size; see proc_pid_clear_refs(5). */
function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

function peakRssBytes(pid: number): number {
  return memoryBytes(readIfThere(`/proc/${pid}/status`), 'VmHWM')
}

/** A process may end while it is looked at. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
