import { defineScript, DELETE_IF_EQUAL, permitWrites, readClock, type RedisConnection } from '@sluice/runtime'
import { fetcherLua, isDueLua } from './bullmq-internals.ts'
import type { LockedJob } from './held-jobs.ts'
import type { QueueNames } from './queue-names.ts'

export const fetchLimits = {
  /** One fetch. Above it, the frames of a fetch would delay the replies to other commands on the connection. */
  jobsMax: 64,
  /** One run of the script. Redis serves no other client meanwhile, for about a millisecond if chunks are small. */
  jobsPerRunMax: 16,
} as const

/** After this time, another worker takes the turn of a dead worker. A fetch renews it when less than half of it is left. */
const TURN_TTL_MS = 5_000

/** The value of the turn's key is one of these, followed by the id of the worker. */
const MARK = { idle: 'idle:', busy: 'busy:' } as const

/** A job that was fetched. */
export interface FetchedJob extends LockedJob {
  /** Its data, as Redis stores it. */
  readonly json: string
  /** Empty if it has none. */
  readonly frame: Buffer
}

/** Undefined if another worker has the turn. Then nothing was fetched. `hasMore`: whether jobs may still be waiting. */
type JobFetch = { readonly jobs: readonly FetchedJob[]; readonly hasMore: boolean } | undefined

/**
 * KEYS: the turn, `absentKey`. ARGV: the beginning of the queue's keys; the turn's value with this worker's mark, and with its other mark;
 * '1' if the worker is busy; the TTL of the turn in ms; how many jobs to fetch; the token and the duration in ms of their locks. Returns
 * whether the worker has the turn, whether jobs may still be waiting, and the id, the data and the frame of each job. The turn is written
 * only when its mark changes or half of its time has passed, since each write makes Redis wait for its disk.
 */
const FETCH = `
${fetcherLua}
${isDueLua}
${permitWrites}
local base, mark, isBusy, ttlMs, count = ARGV[1], ARGV[2], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local turn = redis.call('GET', KEYS[1])
if turn and turn ~= mark and turn ~= ARGV[3] then
  if isBusy == '1' or string.sub(turn, 1, ${MARK.busy.length}) ~= '${MARK.busy}' then return {0} end
end
if turn ~= mark or redis.call('PTTL', KEYS[1]) < ttlMs / 2 then redis.call('SET', KEYS[1], mark, 'PX', ttlMs) end

local function isWaiting() return redis.call('EXISTS', base .. 'wait', base .. 'prioritized') > 0 end
if count == 0 then return {1, isWaiting() and 1 or 0} end
if redis.call('EXISTS', base .. 'wait', base .. 'prioritized', base .. 'delayed') == 0 then return {1, 0} end
${readClock}
if not isWaiting() and not isDue(base, nowMs) then return {1, 0} end

local fetchNext = newFetcher(base, nowMs, ARGV[7], tonumber(ARGV[8]))
local reply = {1, 0}
for i = 1, count do
  local id, data, frame = fetchNext()
  if not id then return reply end
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = id, data, frame
end
if isWaiting() then reply[2] = 1 end
return reply`

const NO_FRAME = Buffer.alloc(0)

type Reply = readonly [isMine: number, hasMore?: number, ...jobs: Buffer[]]

export type JobFetcher = ReturnType<typeof jobFetcher>

/**
 * Fetches jobs of a queue while this worker has the turn. Otherwise the chunks that arrive were spread over all workers, and each worker
 * added would make the batches smaller. A worker that is not busy takes the turn of a busy one. This is for efficiency only.
 */
export function jobFetcher(
  redis: RedisConnection,
  { turnKey, absentKey, jobKey }: QueueNames,
  workerId: string,
  lockDurationMs: number,
) {
  const script = defineScript<Reply>(redis, FETCH, { isBinary: true })
  const deleteIfEqual = defineScript<null>(redis, DELETE_IF_EQUAL)
  /** The turn's value while this worker has it. */
  const [idle, busy] = [`${MARK.idle}${workerId}`, `${MARK.busy}${workerId}`]
  let runs = 0
  /** Whether the last fetch had the turn. */
  let hasTurn = false
  /** The last fetch left jobs. Otherwise a fetch is one run of the script, because each run costs Redis time without a job, too. */
  let isMoreExpected = false

  /** Most workers do not have the turn most of the time. For them this is several times cheaper than the script. */
  async function isTaken(isBusy: boolean): Promise<boolean> {
    const turn = await redis.get(turnKey)
    if (turn === null || turn === idle || turn === busy) return false
    return isBusy || !turn.startsWith(MARK.busy)
  }

  async function run(count: number, isBusy: boolean): Promise<JobFetch> {
    runs += 1
    const token = `${workerId}:${runs}`
    const marks = isBusy ? [busy, idle] : [idle, busy]
    const [isMine, hasMore, ...fields] = await script(
      [turnKey, absentKey],
      [jobKey(''), ...marks, isBusy ? 1 : 0, TURN_TTL_MS, count, token, lockDurationMs],
    )
    const jobs = Array.from({ length: fields.length / 3 }, (_, i) => {
      const [id, json, frame = NO_FRAME] = fields.slice(3 * i, 3 * i + 3)
      return { id: String(id), token, json: String(json), frame }
    })
    return isMine === 1 ? { jobs, hasMore: hasMore === 1 } : undefined
  }

  return {
    /**
     * Fetches the oldest jobs, and sends all of its commands at once. If Redis rejects some of them, it returns the jobs of the others. If a
     * reply is lost, the jobs stay active until their locks expire.
     *
     * @param count the number of jobs, at most; 0 to renew the turn only
     * @throws if Redis rejects all commands
     */
    async fetch(count: number, isBusy: boolean): Promise<JobFetch> {
      if (!hasTurn && (await isTaken(isBusy))) return undefined
      const wanted = Math.min(count, isMoreExpected ? fetchLimits.jobsMax : fetchLimits.jobsPerRunMax)
      const sent: Promise<JobFetch>[] = []
      for (let from = 0; from < Math.max(1, wanted); from += fetchLimits.jobsPerRunMax)
        sent.push(run(Math.min(wanted - from, fetchLimits.jobsPerRunMax), isBusy))
      const results = await Promise.allSettled(sent)
      const fetches = results
        .filter((result) => result.status === 'fulfilled')
        .flatMap(({ value }) => value ?? [])
      const rejection = results.find((result) => result.status === 'rejected')
      const jobs = fetches.flatMap((fetch) => fetch.jobs)
      if (rejection !== undefined && jobs.length === 0) throw rejection.reason as Error
      hasTurn = fetches.length > 0
      isMoreExpected = rejection !== undefined || (fetches.at(-1)?.hasMore ?? false)
      return hasTurn ? { jobs, hasMore: isMoreExpected } : undefined
    },
    /** Lets another worker take the turn at once. Without effect if this worker does not have it. */
    async yieldTurn(): Promise<void> {
      hasTurn = false
      await deleteIfEqual([turnKey], [idle, busy])
    },
  }
}
