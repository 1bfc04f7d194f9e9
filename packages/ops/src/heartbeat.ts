import {
  defineScript,
  installationNames,
  type Logger,
  parseObject,
  permitWrites,
  type Readiness,
  readClock,
  type RedisConnection,
  type RedisScript,
  RegularCheck,
  withTimeout,
} from '@sluice/runtime'
import { withoutSecrets } from './dependencies.ts'
import type { QueueReporter } from './queue-reporter.ts'

export const heartbeatLimits = {
  /**
   * A process that reports nothing for this time is frozen or dead, and another one reports the queues. It covers two heartbeats that are
   * lost.
   */
  silenceMaxMs: 15_000,
  /** How long it is shown then: an operator looks for it some minutes later. */
  keptMs: 600_000,
  /** Processes that are recorded. Above it, silent ones are removed, and further ones are not shown. Each takes less than 1 kB. */
  processesMax: 256,
  /** How long a process that stops waits for Redis. Afterwards its record expires. */
  removalWaitMs: 500,
} as const

/** How long rows took from their receipt until they could be queried, in the last minute. */
export interface RecentLag {
  readonly chunks: number
  readonly meanS: number
  readonly maxS: number
}

/**
 * What a process has counted since it started. An API: entries that it has accepted, and requests and entries that it has rejected. A worker: rows
 * of the batches that it has confirmed.
 */
export type WorkCounts = Partial<
  Readonly<Record<'accepted' | 'rejected' | 'stored' | 'deadLettered', number>>
>

export interface ProcessReport {
  readonly id: string
  readonly role: 'api' | 'worker' | 'query'
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly uptimeS: number
  /** Of a worker. */
  readonly chunksHeld?: number | undefined
  /** Of a worker. Undefined if it stored no chunk in the last minute. */
  readonly lag?: RecentLag | undefined
  readonly counts?: WorkCounts | undefined
  /** Why it is not ready: the first reason of `/readyz`. Undefined if it is ready. */
  readonly notReady?: string | undefined
  readonly ageS: number
  readonly isSilent: boolean
}

/**
 * KEYS: the times of the reports by process, the reports by process, the lease of the process that reports the queues. ARGV: the process,
 * its report, how long reports are kept in ms, the maximum number of processes, how long the lease lasts in ms, and reports if there are as
 * many processes, '1' if the process can report the queues. Older reports are removed. Returns 1 if the process has the lease now. It keeps
 * the lease until it ends, so all values come from the same process while nothing fails.
 */
const RECORD = `
${permitWrites}
${readClock}
local keptMs = redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[4]) and ARGV[3] or ARGV[5]
local expired = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', nowMs - keptMs)
if #expired > 0 then
  redis.call('ZREM', KEYS[1], unpack(expired))
  redis.call('HDEL', KEYS[2], unpack(expired))
end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) and not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], nowMs, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
local reporter = redis.call('GET', KEYS[3])
if reporter and reporter ~= ARGV[1] then return 0 end
if ARGV[6] == '0' then
  redis.call('DEL', KEYS[3])
  return 0
end
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[5])
return 1`

/** KEYS: as in RECORD. ARGV: the process. */
const REMOVE = `
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])`

/** KEYS: as in RECORD. ARGV: the age in ms of the oldest reports. Returns the id, the age in ms and the report of each process, the newest reports last. */
const READ = `
${readClock}
local reply = {}
local seen = redis.call('ZRANGEBYSCORE', KEYS[1], nowMs - ARGV[1], '+inf', 'WITHSCORES')
for i = 1, #seen, 2 do
  reply[#reply + 1] = seen[i]
  reply[#reply + 1] = string.format('%.0f', nowMs - seen[i + 1])
  reply[#reply + 1] = redis.call('HGET', KEYS[2], seen[i]) or ''
end
return reply`

export interface HeartbeatOptions extends Pick<ProcessReport, 'role' | 'host' | 'pid' | 'version'> {
  readonly redis: RedisConnection
  readonly prefix: string
  readonly processId: string
  readonly readiness: () => Readiness
  readonly queues: Pick<QueueReporter, 'canRead' | 'report' | 'update'>
  readonly work?: () => Pick<ProcessReport, 'chunksHeld' | 'lag' | 'counts'>
  readonly monotonicMs: () => number
  readonly logger: Logger
}

/**
 * Records in Redis that this process exists, and whether it is ready, for `sluice status` and the explorer. The same step renews the lease
 * for the report of the queues. Nothing else depends on it: a report that fails is only in the log at the level `debug`, and the next one
 * follows. Replicas do not have to confirm reports.
 *
 * Stopped → running (a report every five seconds, which is one write that waits for the disk of Redis) → stopped (the record is removed, if
 * Redis replies in time).
 */
export class Heartbeat extends RegularCheck<HeartbeatOptions> {
  readonly #keys: readonly string[]
  readonly #record: RedisScript<number>
  readonly #remove: RedisScript<unknown>
  readonly #startedMs: number

  constructor(options: HeartbeatOptions) {
    super(options)
    this.#keys = keysOf(options.prefix)
    this.#record = defineScript(options.redis, RECORD)
    this.#remove = defineScript(options.redis, REMOVE)
    this.#startedMs = options.monotonicMs()
  }

  async check(): Promise<void> {
    const { processId, queues, monotonicMs, logger } = this.options
    const { keptMs, processesMax, silenceMaxMs } = heartbeatLimits
    const leasedUntilMs = monotonicMs() + silenceMaxMs
    let isReporter: boolean
    try {
      const args = [processId, this.#report(), keptMs, processesMax, silenceMaxMs, queues.canRead ? 1 : 0]
      isReporter = (await this.#record(this.#keys, args)) === 1
    } catch (error) {
      logger.debug({ err: error }, 'this process is not reported')
      // While Redis rejects writes, no other process can take the lease, and the report of the queues is needed most.
      if (!(error instanceof Error) || error.name !== 'ReplyError' || queues.report === undefined) return
      isReporter = true
    }
    await queues.update(isReporter ? leasedUntilMs : undefined)
  }

  /** Stops, and removes the record. Never rejects, and waits for Redis no longer than `removalWaitMs`. */
  async leave(): Promise<void> {
    this.stop()
    const removal = this.#remove(this.#keys, [this.options.processId])
    await withTimeout(removal, heartbeatLimits.removalWaitMs).catch(() => undefined)
  }

  #report(): string {
    const { role, host, pid, version, readiness, work, monotonicMs } = this.options
    const { ready, reasons } = readiness()
    return JSON.stringify({
      role,
      host,
      pid,
      version,
      uptimeS: Math.floor((monotonicMs() - this.#startedMs) / 1_000),
      notReady: ready ? undefined : withoutSecrets(reasons[0] ?? 'unknown'),
      ...work?.(),
    })
  }
}

/**
 * The processes that have reported themselves in the last ten minutes and were not stopped, API processes first, then by host. A record
 * without what every process reports, for example of a later version, is ignored.
 *
 * @throws if Redis rejects it
 */
export async function readProcesses(redis: RedisConnection, prefix: string): Promise<ProcessReport[]> {
  const answer = await defineScript<readonly string[]>(redis, READ)(keysOf(prefix), [heartbeatLimits.keptMs])
  const reports = Array.from({ length: answer.length / 3 }, (_, i) =>
    parseReport(answer[3 * i] ?? '', Number(answer[3 * i + 1]), answer[3 * i + 2] ?? ''),
  )
  return reports
    .filter((report) => report !== undefined)
    .toSorted((a, b) => orderOf(a).localeCompare(orderOf(b)))
}

const orderOf = ({ role, host, pid, id }: ProcessReport): string =>
  [role, host, String(pid).padStart(10, '0'), id].join(' ')

function keysOf(prefix: string): readonly string[] {
  const { processTimesKey, processesKey, reporterKey } = installationNames(prefix)
  return [processTimesKey, processesKey, reporterKey]
}

function parseReport(id: string, ageMs: number, text: string): ProcessReport | undefined {
  const record = parseObject(text) ?? {}
  const form = { role: 'string', host: 'string', pid: 'number', version: 'string', uptimeS: 'number' }
  if (Object.entries(form).some(([name, type]) => typeof record[name] !== type)) return undefined
  // A clock of Redis that was set back makes reports of the future.
  const ageS = Math.max(0, ageMs) / 1_000
  const uptimeS = Math.floor(Number(record['uptimeS']) + ageS)
  const isSilent = ageMs > heartbeatLimits.silenceMaxMs
  return { ...(record as unknown as ProcessReport), id, uptimeS, ageS, isSilent }
}
