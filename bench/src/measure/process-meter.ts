import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type Roles, roles } from '../systems.ts'

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
 * threads, and of child processes that were waited for.
 */
export class ProcessMeter {
  readonly #pids: Roles<readonly number[]>
  readonly #cpuAtStartMs: Roles<number>
  readonly #startedMs = performance.now()
  readonly #machineAtStartMs = machineTimes().totalMs
  readonly #ownAtStart = process.cpuUsage()

  /** Starts measuring. @param pids the process ids of each role */
  constructor(pids: Roles<readonly number[]>) {
    this.#pids = pids
    this.#cpuAtStartMs = mapRoles((role) => sum(pids[role], cpuMs))
    for (const role of roles) for (const pid of pids[role]) resetPeak(pid)
  }

  /**
   * The resources used from the start until now.
   *
   * @param generatorMs CPU time that the load generator used meanwhile
   */
  read(generatorMs: number): MeterReading {
    const usage = mapRoles((role) => ({
      cpuMs: sum(this.#pids[role], cpuMs) - this.#cpuAtStartMs[role],
      peakRssBytes: sum(this.#pids[role], (pid) => memoryBytes(statusOf(pid), 'VmHWM')),
    }))
    const own = process.cpuUsage(this.#ownAtStart)
    const knownMs = generatorMs + (own.user + own.system) / 1_000 + totalCpuMs(usage)
    const othersMs = machineTimes().totalMs - this.#machineAtStartMs - knownMs
    return { usage, othersCores: Math.max(0, othersMs) / (performance.now() - this.#startedMs) }
  }
}

function mapRoles<T>(map: (role: keyof Roles<T>) => T): Roles<T> {
  return { api: map('api'), worker: map('worker'), redis: map('redis'), clickhouse: map('clickhouse') }
}

export function totalCpuMs(usage: Roles<Usage>): number {
  return sum(roles, (role) => usage[role].cpuMs)
}

function sum<T>(values: readonly T[], numberOf: (value: T) => number): number {
  return values.reduce((total, value) => total + numberOf(value), 0)
}

/** Times of all cores together since boot: of all programs with what the host gave to other machines (steal), and that alone. */
export function machineTimes(): { readonly totalMs: number; readonly stolenMs: number } {
  // See proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal.
  const [, ...ticks] = (readFileSync('/proc/stat', 'utf8').split('\n', 1)[0] ?? '').split(/ +/).map(Number)
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = ticks
  return { totalMs: (user + nice + system + irq + softirq + steal) * TICK_MS, stolenMs: steal * TICK_MS }
}

/** The CPU time of a process since its start. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name is in parentheses and may contain any character, parentheses included. See proc_pid_stat(5).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return sum(fields.slice(11, 15), Number) * TICK_MS
}

/** Resets VmHWM to the current size. See proc_pid_clear_refs(5). */
function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

/** Resources that processes hold at a point in time. */
export interface ProcessSize {
  readonly residentBytes: number
  /** Open files and sockets. */
  readonly handles: number
}

/** The total size of the given processes, from /proc. @throws when one of them has exited */
export function sizeOf(pids: readonly number[]): ProcessSize {
  return {
    residentBytes: sum(pids, (pid) => memoryBytes(statusOf(pid), 'VmRSS')),
    handles: sum(pids, (pid) => readdirSync(`/proc/${pid}/fd`).length),
  }
}

function statusOf(pid: number): string {
  return readFileSync(`/proc/${pid}/status`, 'utf8')
}

/** A size from a process's status, or 0 if the status lacks it. See proc_pid_status(5). */
function memoryBytes(status: string, name: 'VmRSS' | 'VmHWM'): number {
  const [, kilobytes = '0'] = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status) ?? []
  return Number(kilobytes) * 1_024
}
