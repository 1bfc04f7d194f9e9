import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Roles } from '../systems/system.ts'

/** Resources used by the processes of a role. */
export interface Usage {
  readonly cpuMs: number
  /** The largest resident set since the meter was started. */
  readonly peakRssBytes: number
}

/** Resources used while a meter ran. */
export interface MeterReading {
  readonly usage: Roles<Usage>
  /** Average number of cores that programs unrelated to the measurement used. */
  readonly othersCores: number
}

/** USER_HZ, the unit of the times in /proc, is part of the kernel's interface to programs: 100 on all machines. */
const TICK_MS = 10

/**
 * Measures the CPU time and peak memory of a system's processes from /proc. CPU time is the user and system time of all
 * threads, and of child processes that were waited for. Each process leads a process group, and the whole group counts.
 */
export class ProcessMeter {
  readonly #roles: Roles<readonly number[]>
  readonly #cpuAtStartMs: Roles<number>
  readonly #startedMs = performance.now()
  readonly #machineAtStartMs = machineCpuMs()
  readonly #ownAtStart = process.cpuUsage()

  /** Starts measuring. @param roles the process ids of each role */
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
   * The resources used from the start until now.
   *
   * @param generatorMs CPU time that the load generator used meanwhile
   */
  read(generatorMs: number): MeterReading {
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

/** CPU time of all programs on all cores since boot, including the time that the host took away. */
function machineCpuMs(): number {
  const { programsMs, stolenMs } = machineTimes()
  return programsMs + stolenMs
}

/** Times of all cores together since boot: of all programs, and what the host gave to other machines (steal). */
export function machineTimes(): { readonly programsMs: number; readonly stolenMs: number } {
  // See proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal.
  const [, ...ticks] = (readFileSync('/proc/stat', 'utf8').split('\n', 1)[0] ?? '').split(/ +/).map(Number)
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = ticks
  return { programsMs: (user + nice + system + irq + softirq) * TICK_MS, stolenMs: steal * TICK_MS }
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

/** All processes of the machine, by process group. */
function readGroups(): Map<number, ProcessTimes[]> {
  const groups = new Map<number, ProcessTimes[]>()
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = readIfExists(`/proc/${entry}/stat`)
    // The name is in parentheses and may contain any character, parentheses included. See proc_pid_stat(5).
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

/** Resets VmHWM to the current size. See proc_pid_clear_refs(5). */
function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

function peakRssBytes(pid: number): number {
  return memoryBytes(readIfExists(`/proc/${pid}/status`), 'VmHWM')
}

/** A process may exit between listing and reading it. */
function readIfExists(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Resources that processes hold at a point in time. */
export interface ProcessSize {
  readonly residentBytes: number
  /** Open files and sockets. */
  readonly handles: number
}

/** The total size of the given processes, from /proc. @throws when one of them has exited */
export function sizeOf(pids: readonly number[]): ProcessSize {
  let residentBytes = 0
  let handles = 0
  for (const pid of pids) {
    residentBytes += memoryBytes(readFileSync(`/proc/${pid}/status`, 'utf8'), 'VmRSS')
    handles += readdirSync(`/proc/${pid}/fd`).length
  }
  return { residentBytes, handles }
}

/** A size from a process's status, or 0 if the status lacks it. See proc_pid_status(5). */
function memoryBytes(status: string, name: 'VmRSS' | 'VmHWM'): number {
  const [, kilobytes = '0'] = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status) ?? []
  return Number(kilobytes) * 1_024
}
