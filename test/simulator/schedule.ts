import { happens, integer, pick, type Random, seededRandom } from '@sluice/harness'
import { workerLimits } from '../../apps/worker/src/limits.ts'
import { type Send, startSimulatedApi } from './simulated-api.ts'
import { rejectedIds, SimulatedClickHouse } from './simulated-clickhouse.ts'
import { type Link, type LinkFaults, SimulatedProcess } from './simulated-process.ts'
import { LOCK_MS, RELEASED_TTL_MS, SimulatedRedis } from './simulated-redis.ts'
import { simulateRuntime } from './simulated-runtime.ts'
import { SimulatedTime } from './simulated-time.ts'
import { startSimulatedWorker } from './simulated-worker.ts'

/** Entries are sent and faults happen during this time. Then all faults end. */
const FAULTY_MS = 60_000
/** By then everything must be stored. Rows that are rejected with an unknown code take several minutes. */
const LIMIT_MS = 7_200_000
/** After the faults, an entry is sent at this interval, as in any installation that is used. */
const LATER_ENTRIES_MS = 15_000
/** Inserts that were given up commit until this time after everything else. */
const LATE_COMMITS_MS = 1_200_000

/** The clock of Redis at the beginning. */
const BEGIN_MS = Date.UTC(2026, 10, 22)
/** A reader asks up to which receipt it has everything, and closes the time until shortly before. */
const QUESTION_INTERVAL_MS = 3_000
const SETTLE_MS = 250
/** How far the clock of an API process may be off, until it is measured again. */
const STAMP_ERROR_MS = 5_000

/** The limit of a suspension that ends when another process is suspended. */
const OVERTAKEN_MS = 150_000
/** Meanwhile another worker delivers a chunk, and then the record of its batch expires. */
const UNTIL_RECORDS_EXPIRE_MS = 1.5 * RELEASED_TTL_MS

const noFaults: LinkFaults = { refused: 0, answerLost: 0, delayed: 0 }

simulateRuntime()

export interface Outcome {
  /** What is wrong; undefined if every acknowledged entry is stored once, and no other entry is stored twice. */
  readonly failure: string | undefined
  readonly acknowledged: number
  readonly faults: number
  /** What happened, if a trace was asked for. */
  readonly trace: readonly string[]
}

/** Runs one random schedule of requests and faults against the simulated servers. The seed determines everything. */
export async function runSchedule(seed: number, withTrace = false): Promise<Outcome> {
  return new Schedule(seed, withTrace).run()
}

class Schedule {
  readonly #random: Random
  readonly #time = new SimulatedTime()
  readonly #redis = new SimulatedRedis(this.#time)
  readonly #clickhouse: SimulatedClickHouse
  readonly #reader: SimulatedProcess
  readonly #faultsNow: () => LinkFaults
  readonly #areTokensAtomic: boolean
  /** Whether an operator changes the table, so that it accepts rows that it has rejected. */
  readonly #repairsTable: boolean
  /** Whether the first worker never reaches ClickHouse. The other one must store everything. */
  readonly #isFirstCutOff: boolean
  /** Schedules with such rows take several times as long. */
  readonly #unknownRate: number
  readonly #trace: string[] | undefined
  readonly #processes: SimulatedProcess[] = []
  readonly #workers: { readonly process: SimulatedProcess; readonly heldChunks: () => number }[] = []
  #api: { readonly process: SimulatedProcess; readonly send: Send } | undefined
  readonly #cutOff = new Set<SimulatedProcess>()
  readonly #acknowledged: string[] = []
  /** Requests without a response. */
  readonly #open = new Set<{ readonly process: SimulatedProcess }>()
  #isClickHouseDown = false
  #isRedisDown = false
  #isFaulty = true
  #isSending = true
  /** No row that was received by then may become visible. */
  #completeMs = -1
  #incomplete: string | undefined
  #entries = 0
  #faults = 0
  #ids = 0

  constructor(seed: number, withTrace: boolean) {
    this.#trace = withTrace ? [] : undefined
    const random = (this.#random = seededRandom(seed))
    this.#reader = new SimulatedProcess('reader', this.#time, random, (event) => this.#note(event))
    this.#areTokensAtomic = happens(random, 0.5)
    const crashes = happens(random, 0.3) ? 0.05 : 0
    const memoryErrors = pick(random, [0, 0, 0.1, 0.4])
    const keepsPart = happens(random, 0.5)
    this.#repairsTable = happens(random, 0.2)
    this.#isFirstCutOff = happens(random, 0.1)
    this.#unknownRate = happens(random, 0.15) ? 0.1 : 0
    this.#clickhouse = new SimulatedClickHouse(this.#time, {
      failsForMemory: () => this.#isFaulty && happens(random, memoryErrors),
      crashesInCommit: () => this.#isFaulty && !this.#areTokensAtomic && happens(random, crashes),
      keepsPartOfRejected: () => keepsPart && happens(random, 0.5),
      storesRejected: happens(random, 0.1),
    })
    this.#clickhouse.onVisible = (id, receivedAt) => {
      if (Date.parse(`${receivedAt}Z`) <= this.#completeMs)
        this.#incomplete ??= `${id}, received at ${receivedAt}, became visible after ${this.#completeMs} was complete`
    }
    // A table that accepts rows which it rejected before only matters together with late requests.
    const rate = pick(random, this.#repairsTable ? [0.02, 0.1, 0.2] : [0, 0, 0.02, 0.1])
    const isLate = this.#repairsTable || happens(random, 0.5)
    const faults = { refused: rate, answerLost: rate, delayed: isLate ? rate : 0 }
    this.#faultsNow = () => (this.#isFaulty ? faults : noFaults)
  }

  async run(): Promise<Outcome> {
    const random = this.#random
    for (let i = 0; i < 2; i += 1) this.#startWorker()
    this.#startApi()
    for (let i = integer(random, 3, 12); i > 0; i -= 1)
      this.#time.after(random() * FAULTY_MS, () => void this.#send())
    if (happens(random, 0.8)) this.#ask()
    for (let i = integer(random, 0, 8); i > 0; i -= 1)
      this.#time.after(random() * FAULTY_MS, () => this.#inject())
    if (this.#repairsTable) this.#time.after(random() * 4 * FAULTY_MS, () => this.#repairTable())
    this.#time.after(FAULTY_MS, () => {
      this.#isFaulty = false
      this.#sendLater()
    })
    const isDrained = await this.#time.runUntil(
      () => !this.#isFaulty && this.#isAnswered && this.#redis.jobs === 0,
      LIMIT_MS,
    )
    this.#note('no more entries')
    this.#isSending = false
    await this.#time.runUntil(
      () => this.#isAnswered && this.#redis.jobs === 0 && this.#heldChunks === 0,
      LIMIT_MS,
    )
    const left = this.#redis.jobs
    const held = this.#heldChunks
    for (const process of this.#processes) process.kill()
    await this.#time.runUntil(() => false, this.#time.nowMs + LATE_COMMITS_MS)
    const failure = isDrained
      ? this.#audit(held)
      : `${left} chunks are left after ${LIMIT_MS} ms: ${this.#redis.describe()}`
    const { length: acknowledged } = this.#acknowledged
    return { failure, acknowledged, faults: this.#faults, trace: this.#trace ?? [] }
  }

  get #isAnswered(): boolean {
    return [...this.#open].every(({ process }) => process.isDead)
  }

  /** The chunks in the hands of the workers that live. A chunk that stays there can stop a worker from fetching. */
  get #heldChunks(): number {
    return this.#workers.reduce(
      (sum, { process, heldChunks }) => sum + (process.isDead ? 0 : heldChunks()),
      0,
    )
  }

  #audit(held: number): string | undefined {
    if (this.#redis.failed > 0) return `${this.#redis.failed} chunks are failed jobs`
    if (this.#incomplete !== undefined) return this.#incomplete
    const closedMs = this.#redisMs
    const completeMs = this.#redis.complete(closedMs)
    if (completeMs < closedMs) return `complete up to ${completeMs} only, at ${closedMs}, without chunks`
    const counts = new Map<string, number>()
    for (const id of [...this.#clickhouse.rows, ...this.#clickhouse.deadLetters])
      counts.set(id, (counts.get(id) ?? 0) + 1)
    const lost = this.#acknowledged.filter((id) => !counts.has(id))
    const doubled = [...counts].filter(([, count]) => count > 1).map(([id]) => id)
    if (lost.length > 0) return `lost: ${lost.join(' ')}`
    if (doubled.length > 0) return `stored twice: ${doubled.join(' ')}`
    if (held > 0) return `${held} chunks stay in hand`
    // What the counts in Redis say is what ClickHouse has.
    const { added, inserted, deadLettered } = this.#redis.totals
    const [rows, letters] = [this.#clickhouse.rows.length, this.#clickhouse.deadLetters.length]
    return added === inserted + deadLettered && inserted === rows && deadLettered === letters
      ? undefined
      : `counted ${added} added, ${inserted} inserted and ${deadLettered} dead-lettered, but stored ${rows} and ${letters}`
  }

  #startWorker(): void {
    const isFirst = this.#processes.length === 0
    const process = this.#startProcess('worker')
    if (isFirst && this.#isFirstCutOff) this.#cutOff.add(process)
    const heldChunks = startSimulatedWorker({
      process,
      redis: this.#redis,
      clickhouse: this.#clickhouse,
      random: this.#random,
      areTokensAtomic: this.#areTokensAtomic,
      makeId: () => this.#makeId('batch'),
      toRedis: this.#linkToRedis(),
      toClickHouse: {
        faults: this.#faultsNow,
        reaches: () => !this.#isClickHouseDown && !this.#cutOff.has(process),
        answers: () => true,
        // An insert of rejected rows cannot consume a token, so it must not arrive late: see the assumptions in docs/exactly-once.md.
        ...(this.#repairsTable && {
          delayMaxMs: workerLimits.insertLingerMaxMs,
          // The worst moment: ClickHouse has just rejected the same rows.
          beforeArrival: () => happens(this.#random, 0.2) && this.#repairTable(),
        }),
      },
    })
    this.#workers.push({ process, heldChunks })
  }

  #startApi(): void {
    const process = this.#startProcess('api')
    const makeId = (): string => this.#makeId('chunk')
    this.#api = { process, send: startSimulatedApi(process, this.#redis, this.#linkToRedis(), makeId) }
  }

  #startProcess(kind: string): SimulatedProcess {
    const name = `${kind}-${this.#processes.length}`
    const process = new SimulatedProcess(name, this.#time, this.#random, (event) => this.#note(event))
    this.#processes.push(process)
    this.#note(`${process.name} starts`)
    return process
  }

  #linkToRedis(): Link {
    return {
      faults: this.#faultsNow,
      reaches: () => !this.#isRedisDown,
      answers: () => !this.#redis.isIsolated,
    }
  }

  get #redisMs(): number {
    return BEGIN_MS + Math.floor(this.#redis.clockMs)
  }

  #makeId(kind: string): string {
    this.#ids += 1
    return `${kind}-${this.#ids}`
  }

  async #send(): Promise<void> {
    const rows = Array.from({ length: integer(this.#random, 1, 4) }, () => this.#makeRow())
    const api = this.#api
    if (api === undefined || api.process.isDead) return
    const request = { process: api.process }
    this.#open.add(request)
    const isAcknowledged = await api.send(rows.map(({ text }) => text))
    this.#open.delete(request)
    if (!isAcknowledged) return
    const ids = rows.map(({ id }) => id)
    this.#acknowledged.push(...ids)
    this.#note(`acknowledged ${ids.join(' ')}`)
  }

  /** A reader asks now, and again and again. */
  #ask(): void {
    const closedMs = this.#redisMs - SETTLE_MS
    this.#reader
      .request('complete', () => this.#redis.complete(closedMs), this.#linkToRedis())
      .then(
        (completeMs) => (this.#completeMs = Math.max(this.#completeMs, completeMs)),
        // It knows nothing new.
        () => undefined,
      )
    if (this.#isSending) this.#time.after(this.#random() * QUESTION_INTERVAL_MS, () => this.#ask())
  }

  #makeRow(): { id: string; text: string } {
    this.#entries += 1
    // All are valid after the faults.
    const dice = this.#isFaulty ? this.#random() : this.#random() + 1
    const poisonRate = this.#repairsTable ? 0.15 : 0.06
    const isUnknown = dice < poisonRate + this.#unknownRate
    const kind = dice < poisonRate ? rejectedIds.poison : isUnknown ? rejectedIds.unknown : ''
    const id = `${kind}row-${this.#entries}`
    const expiresOn = `2026-12-0${integer(this.#random, 1, 2)}`
    const projectId = kind === '' && this.#entries % 2 === 0 ? 'p' : 'q'
    const errorMs = happens(this.#random, 0.3) ? (2 * this.#random() - 1) * STAMP_ERROR_MS : 0
    const receivedAt = new Date(this.#redisMs + errorMs).toISOString().slice(0, -1).replace('T', ' ')
    return { id, text: `${projectId}\t${receivedAt}\t${expiresOn}\t${id}\t2026-11-22 00:00:00\n` }
  }

  #inject(): void {
    this.#faults += 1
    const random = this.#random
    const process = pick(random, this.#processes)
    const ms = pick(random, [2_000, 20_000, 60_000])
    const { faults } = this.#clickhouse
    const whileOn = (name: string, set: (isOn: boolean) => unknown) => () => this.#for(ms, name, set)
    pick(random, [
      () => this.#kill(process),
      () => this.#suspend(process, ms),
      // In the middle of a batch, where most guards are.
      () => process.beforeRequest(integer(random, 1, 30), '', () => this.#kill(process)),
      () => process.beforeRequest(integer(random, 1, 4), 'insert', () => this.#kill(process)),
      () => process.beforeRequest(integer(random, 1, 30), '', () => this.#suspend(process, 60_000)),
      () => process.beforeRequest(integer(random, 1, 4), 'insert', () => this.#suspend(process, 60_000)),
      // Others deliver what it has fetched.
      () =>
        process.beforeRequest(integer(random, 1, 4), 'claim', () =>
          this.#suspend(process, pick(random, [60_000, UNTIL_RECORDS_EXPIRE_MS])),
        ),
      // More often than the others, because several conditions must be met afterwards.
      ...Array.from(
        { length: 4 },
        () => () => process.beforeRequest(integer(random, 1, 4), 'insert', () => this.#overtake(process)),
      ),
      whileOn('ClickHouse is down', (isOn) => (this.#isClickHouseDown = isOn)),
      whileOn('Redis is away', (isOn) => (this.#isRedisDown = isOn)),
      whileOn('no memory', (isOn) => (faults.isShortOfMemory = isOn)),
      whileOn('the table is broken', (isOn) => (faults.isTableBroken = isOn)),
      whileOn(`${process.name} has no ClickHouse`, (isOn) =>
        isOn ? this.#cutOff.add(process) : this.#cutOff.delete(process),
      ),
      () => this.#stepRedisClock(pick(random, [-600_000, -10_000, 10_000, 600_000])),
      whileOn('the clock of ClickHouse is wrong', (isOn) => (faults.isClockWrong = isOn)),
      () =>
        this.#for(2_000, 'Redis fails over', (isOn) =>
          isOn ? this.#redis.isolate() : this.#redis.failOver(),
        ),
    ])()
  }

  #repairTable(): void {
    this.#note('the table accepts all rows')
    this.#clickhouse.faults.acceptsAll = true
  }

  #kill(process: SimulatedProcess): void {
    if (process.isDead || !this.#isFaulty) return
    this.#note(`${process.name} is killed`)
    process.kill()
    this.#time.after(integer(this.#random, 0, 5_000), () =>
      process.name.startsWith('api') ? this.#startApi() : this.#startWorker(),
    )
  }

  #suspend(process: SimulatedProcess, ms: number): void {
    // A suspended worker may insert a row that another one has dead-lettered meanwhile: see invariant 5 in docs/exactly-once.md.
    if (process.isDead || !this.#isFaulty || this.#repairsTable) return
    this.#note(`${process.name} is suspended for ${ms} ms`)
    process.suspend(ms)
  }

  /** Suspends a process before its insert, and another one in the middle of a repair, maybe of the same batch. Then the first goes on. */
  #overtake(process: SimulatedProcess): void {
    if (process.isDead || !this.#isFaulty || this.#repairsTable) return
    this.#note(`${process.name} is suspended until another one repairs`)
    process.suspend(OVERTAKEN_MS)
    // Batches are split.
    this.#time.after(LOCK_MS, () =>
      this.#for(20_000, 'no memory', (isOn) => (this.#clickhouse.faults.isShortOfMemory = isOn)),
    )
    for (const other of this.#processes) {
      if (other === process) continue
      other.beforeRequest(1, 'split', () =>
        other.beforeRequest(integer(this.#random, 1, 12), '', () => {
          this.#note(`${other.name} is suspended in a repair`)
          other.suspend(OVERTAKEN_MS)
          this.#time.after(LOCK_MS, () => process.resume())
        }),
      )
    }
  }

  #stepRedisClock(ms: number): void {
    this.#note(`the clock of Redis is set ${ms} ms ahead`)
    this.#redis.stepClock(ms)
  }

  #for(ms: number, name: string, set: (isOn: boolean) => unknown): void {
    this.#note(`${name} for ${ms} ms`)
    set(true)
    this.#time.after(ms, () => {
      this.#note(`end: ${name}`)
      set(false)
    })
  }

  /** Keeps sending valid entries. A worker only blames a row if ClickHouse accepts others. */
  #sendLater(): void {
    if (!this.#isSending) return
    void this.#send()
    this.#time.after(LATER_ENTRIES_MS, () => this.#sendLater())
  }

  #note(event: string): void {
    this.#trace?.push(`${(this.#time.nowMs / 1_000).toFixed(3).padStart(9)} s  ${event}`)
  }
}
