import {
  type Direction,
  integer,
  logInteger,
  pick,
  type Random,
  seededRandom,
  shuffle,
} from '@sluice/harness'

/** The processes of an installation and the network links between them. */
export interface Topology {
  readonly processes: readonly ProcessPlace[]
  readonly links: readonly LinkPlace[]
}

type ProcessRole = 'api' | 'worker' | 'redis' | 'clickhouse'

interface ProcessPlace {
  readonly name: string
  readonly role: ProcessRole
}

interface LinkPlace {
  readonly name: string
  readonly from: ProcessRole | 'clients'
  readonly to: ProcessRole
}

export function buildTopology(apis: number, workers: number): Topology {
  const places = (role: ProcessRole, count: number): ProcessPlace[] =>
    Array.from({ length: count }, (_, index) => ({ name: `${role}-${index + 1}`, role }))
  const links = (from: ProcessRole, count: number, to: ProcessRole): LinkPlace[] =>
    places(from, count).map(({ name }) => ({ name: linkName(name, to), from, to }))
  const toRedis = links('worker', workers, 'redis')
  const toClickHouse = links('worker', workers, 'clickhouse')
  return {
    processes: [
      ...places('api', apis),
      ...places('worker', workers),
      { name: 'redis', role: 'redis' },
      { name: 'clickhouse', role: 'clickhouse' },
    ],
    links: [
      ...places('api', apis).map(
        ({ name }) => ({ name: linkName('clients', name), from: 'clients', to: 'api' }) as const,
      ),
      ...links('api', apis, 'redis'),
      ...toRedis.flatMap((link, index) => [link, ...toClickHouse.slice(index, index + 1)]),
    ],
  }
}

export function linkName(from: string, to: string): string {
  return `${from}>${to}`
}

/** What happens, and when: milliseconds after the load has begun. */
export type Fault = { readonly atMs: number } & FaultKind

type FaultKind =
  /** kill -9; started again after `downMs`. */
  | { readonly kind: 'kill'; readonly process: string; readonly downMs: number }
  /** SIGTERM; started again after `downMs`. */
  | { readonly kind: 'terminate'; readonly process: string; readonly downMs: number }
  /** SIGSTOP, and SIGCONT after `forMs`. */
  | { readonly kind: 'freeze'; readonly process: string; readonly forMs: number }
  /** Every connection of a link is closed by RST. */
  | { readonly kind: 'reset'; readonly link: string }
  /** A link accepts bytes and forwards none. Then it forwards them, or resets its connections. */
  | {
      readonly kind: 'black-hole'
      readonly link: string
      readonly direction: Direction | 'both'
      readonly forMs: number
      readonly ending: 'resume' | 'reset'
    }
  /** For `forMs`, each connection of a link is cut after `afterBytes` in one direction: in a request or a response. */
  | {
      readonly kind: 'cut'
      readonly link: string
      readonly direction: Direction
      readonly afterBytes: number
      readonly forMs: number
    }
  /** The open connections of a link forward nothing any more. New ones work. */
  | { readonly kind: 'silence'; readonly link: string }
  /** New connections of a link fail, and the open ones are reset. */
  | { readonly kind: 'unplug'; readonly link: string; readonly forMs: number }
  /** No process reaches a server. */
  | { readonly kind: 'outage'; readonly server: ProcessRole; readonly forMs: number }
  /** The wall clock of a process is set, and set back after `forMs`. */
  | { readonly kind: 'clock'; readonly process: string; readonly shiftMs: number; readonly forMs: number }
  /** ClickHouse is restarted, and no query may use more than `bytes`, for `forMs`. */
  | { readonly kind: 'memory'; readonly bytes: number; readonly forMs: number }
  /** ClickHouse rejects some rows with a code that the worker does not know. */
  | { readonly kind: 'rule'; readonly forMs: number }
  /** The power of a server's disk is cut. The server is started again after `downMs`. */
  | { readonly kind: 'power'; readonly process: string; readonly downMs: number }

const scheduleLimits = {
  /** The duration of one deck. It has 18 faults, and 20 with power cuts: one every 3 s, and 6 kills per minute. */
  deckMs: 60_000,
  downMs: { min: 0, max: 5_000 },
  freezeMs: { min: 500, max: 20_000 },
  /** Longer than any lock: another worker takes over the chunks of the frozen one. */
  longFreezeMs: 90_000,
  /** One deck in this many has a long freeze, if the schedule is long enough for it. The same for the other long faults. */
  longFaultEveryDecks: 4,
  longFaultDurationMs: 300_000,
  /** The longest exceeds both the API's timeout for Redis (2 s) and the lock of the workers. */
  blackHoleMs: { min: 500, max: 8_000 },
  cutMs: 3_000,
  /** Longer than the worker takes to return its chunks (10 s). */
  unplugMs: { min: 5_000, max: 30_000 },
  /** Longer than the locks of the workers (5 s). */
  outageMs: { min: 6_000, max: 15_000 },
  clockShiftMs: [-40 * 86_400_000, -3_600_000, 60_000, 400 * 86_400_000],
  clockMs: { min: 2_000, max: 20_000 },
  /** ClickHouse needs 4.2 MiB for an insert. With the first of these limits there is none; with the second there are small ones. */
  memoryBytes: [3_000_000, 4_500_000],
  memoryMs: 60_000,
  ruleMs: 25_000,
  /** From the middle of the first line to beyond the end of a typical request or batch. */
  cutAfterBytes: { min: 1, max: 16_384 },
} as const

type Card = (dealer: Dealer, deck: number) => FaultKind

/** The faults of one deck. Each deck is shuffled: every kind of fault happens, at unpredictable times. */
const deck: readonly Card[] = [
  (dealer) => kill(dealer, ['api']),
  (dealer) => kill(dealer, ['worker']),
  (dealer) => kill(dealer, ['worker']),
  (dealer) => kill(dealer, ['redis']),
  (dealer) => kill(dealer, ['clickhouse']),
  (dealer) => kill(dealer, ['api', 'worker', 'redis', 'clickhouse']),
  (dealer, number) => freeze(dealer, ['worker'], dealer.hasLongFreeze(number)),
  (dealer) => freeze(dealer, ['api', 'redis', 'clickhouse'], false),
  (dealer) => ({
    kind: 'terminate',
    process: dealer.process(['api', 'worker', 'redis', 'clickhouse']),
    downMs: dealer.integer(scheduleLimits.downMs),
  }),
  (dealer) => ({ kind: 'reset', link: dealer.link(() => true) }),
  (dealer) => blackHole(dealer, ({ to }) => to === 'clickhouse'),
  (dealer) => blackHole(dealer, () => true),
  (dealer) => cut(dealer, 'request'),
  (dealer) => cut(dealer, 'answer'),
  (dealer) => ({ kind: 'silence', link: dealer.link(({ from }) => from !== 'clients') }),
  (dealer) => ({
    kind: 'unplug',
    link: dealer.link(({ from, to }) => from === 'worker' && to === 'clickhouse'),
    forMs: dealer.integer(scheduleLimits.unplugMs),
  }),
  (dealer) => ({ kind: 'outage', server: 'redis', forMs: dealer.integer(scheduleLimits.outageMs) }),
  (dealer) => ({
    kind: 'clock',
    process: dealer.process(['api', 'worker']),
    shiftMs: dealer.pick(scheduleLimits.clockShiftMs),
    forMs: dealer.integer(scheduleLimits.clockMs),
  }),
]

const powerCards: readonly Card[] = (['redis', 'clickhouse'] as const).map((role) => (dealer) => ({
  kind: 'power',
  process: dealer.process([role]),
  downMs: dealer.integer(scheduleLimits.downMs),
}))

/** One of them is added to each deck of a long run, in rotation. */
const longCards: readonly (readonly Card[])[] = [
  [],
  [],
  [
    (dealer) => ({
      kind: 'memory',
      bytes: dealer.pick(scheduleLimits.memoryBytes),
      forMs: scheduleLimits.memoryMs,
    }),
  ],
  [() => ({ kind: 'rule', forMs: scheduleLimits.ruleMs })],
]

export interface PlanOptions {
  readonly seed: number
  readonly durationMs: number
  readonly topology: Topology
  /** Whether the disks of Redis and ClickHouse can lose their power. */
  readonly hasPowerCuts: boolean
  /** The duration of one deck. A shorter one has the same faults at shorter intervals. Default: `scheduleLimits.deckMs` */
  readonly deckMs?: number | undefined
}

/** The faults of a run, ordered by time. The same arguments return the same faults. */
export function planFaults(options: PlanOptions): Fault[] {
  const { durationMs, topology, hasPowerCuts, deckMs = scheduleLimits.deckMs } = options
  const random = seededRandom(options.seed)
  const dealer = new Dealer(random, topology, durationMs)
  const faults: Fault[] = []
  for (let number = 0; number * deckMs < durationMs; number += 1) {
    const cards = [...deck, ...(hasPowerCuts ? powerCards : []), ...dealer.longCards(number)]
    const slotMs = deckMs / cards.length
    for (const [slot, card] of shuffle(random, cards).entries()) {
      const atMs = Math.round(number * deckMs + (slot + random()) * slotMs)
      dealer.atMs = atMs
      faults.push({ atMs, ...card(dealer, number) })
    }
  }
  return faults.filter(({ atMs }) => atMs < durationMs)
}

export function describeFault(fault: Fault): string {
  const { atMs, kind, ...details } = fault
  const words = Object.entries(details).map(([name, value]) =>
    name === 'process' || name === 'link' ? String(value) : `${name}=${String(value)}`,
  )
  return `${(atMs / 1000).toFixed(3).padStart(9)} s  ${kind.padEnd(10)} ${words.join('  ')}`
}

/** Chooses random victims, and avoids processes that are still frozen where there is another one of the role. */
class Dealer {
  atMs = 0
  readonly #random: Random
  readonly #topology: Topology
  readonly #durationMs: number
  readonly #frozenUntilMs = new Map<string, number>()

  constructor(random: Random, topology: Topology, durationMs: number) {
    this.#random = random
    this.#topology = topology
    this.#durationMs = durationMs
  }

  integer({ min, max }: { min: number; max: number }): number {
    return integer(this.#random, min, max)
  }

  logInteger({ min, max }: { min: number; max: number }): number {
    return logInteger(this.#random, min, max)
  }

  pick<T>(items: readonly T[]): T {
    return pick(this.#random, items)
  }

  process(roles: readonly ProcessRole[]): string {
    const role = this.pick(roles)
    const awake = this.#topology.processes
      .filter((place: ProcessPlace) => place.role === role)
      .map(({ name }) => ({ name, fromMs: Math.max(this.atMs, this.#frozenUntilMs.get(name) ?? 0) }))
    const soonestMs = Math.min(...awake.map(({ fromMs }) => fromMs))
    return this.pick(awake.filter(({ fromMs }) => fromMs === soonestMs)).name
  }

  link(isEligible: (link: LinkPlace) => boolean): string {
    return this.pick(this.#topology.links.filter(isEligible)).name
  }

  freeze(name: string, forMs: number): void {
    const untilMs = Math.max(this.#frozenUntilMs.get(name) ?? 0, this.atMs + forMs)
    this.#frozenUntilMs.set(name, untilMs)
  }

  hasLongFreeze(number: number): boolean {
    return this.#hasLongFaults && number % scheduleLimits.longFaultEveryDecks === 1
  }

  longCards(number: number): readonly Card[] {
    return (this.#hasLongFaults && longCards[number % scheduleLimits.longFaultEveryDecks]) || []
  }

  get #hasLongFaults(): boolean {
    return this.#durationMs >= scheduleLimits.longFaultDurationMs
  }
}

function kill(dealer: Dealer, roles: readonly ProcessRole[]): FaultKind {
  return { kind: 'kill', process: dealer.process(roles), downMs: dealer.integer(scheduleLimits.downMs) }
}

function freeze(dealer: Dealer, roles: readonly ProcessRole[], isLong: boolean): FaultKind {
  const process = dealer.process(roles)
  const forMs = isLong ? scheduleLimits.longFreezeMs : dealer.logInteger(scheduleLimits.freezeMs)
  dealer.freeze(process, forMs)
  return { kind: 'freeze', process, forMs }
}

function blackHole(dealer: Dealer, isEligible: (link: LinkPlace) => boolean): FaultKind {
  return {
    kind: 'black-hole',
    link: dealer.link(isEligible),
    direction: dealer.pick(['both', 'request', 'answer'] as const),
    forMs: dealer.integer(scheduleLimits.blackHoleMs),
    ending: dealer.pick(['resume', 'reset'] as const),
  }
}

function cut(dealer: Dealer, direction: Direction): FaultKind {
  return {
    kind: 'cut',
    link: dealer.link(() => true),
    direction,
    afterBytes: dealer.logInteger(scheduleLimits.cutAfterBytes),
    forMs: scheduleLimits.cutMs,
  }
}
