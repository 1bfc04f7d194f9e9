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

const places = (role: ProcessRole, count: number): ProcessPlace[] =>
  Array.from({ length: count }, (_, index) => ({ name: `${role}-${index + 1}`, role }))

export function buildTopology(apis: number, workers: number): Topology {
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
      ...toRedis.flatMap((link, index) => [link].concat(toClickHouse.slice(index, index + 1))),
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

const limits = {
  /** The duration of one deck. It has 18 faults, and 20 with power cuts: one every 3 s, and 6 kills per minute. */
  deckMs: 60_000,
  downMs: { min: 0, max: 5_000 },
  freezeMs: { min: 500, max: 20_000 },
  /** Longer than any lock: another worker takes over the chunks of the frozen one. */
  longFreezeMs: 90_000,
  /** Shorter schedules have no long faults. */
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

/** Chooses random victims, durations and times. */
interface Dealer {
  readonly between: (limits: { readonly min: number; readonly max: number }) => number
  /** The same, but the logarithm is evenly distributed. */
  readonly scaled: (limits: { readonly min: number; readonly max: number }) => number
  readonly pick: <T>(items: readonly T[]) => T
  /** Avoids processes that are still frozen where there is another one of the role. */
  readonly process: (...roles: readonly ProcessRole[]) => string
  readonly link: (isEligible?: (link: LinkPlace) => boolean) => string
  readonly freeze: (process: string, forMs: number) => FaultKind
}

/** Creates one fault of its kind. */
type Card = (dealer: Dealer, isLong: boolean) => FaultKind

const kill =
  (...roles: readonly ProcessRole[]): Card =>
  (deal) => ({ kind: 'kill', process: deal.process(...roles), downMs: deal.between(limits.downMs) })
const power =
  (role: 'redis' | 'clickhouse'): Card =>
  (deal) => ({ kind: 'power', process: deal.process(role), downMs: deal.between(limits.downMs) })
const blackHole =
  (isEligible?: (link: LinkPlace) => boolean): Card =>
  (deal) => ({
    kind: 'black-hole',
    link: deal.link(isEligible),
    direction: deal.pick(['both', 'request', 'answer'] as const),
    forMs: deal.between(limits.blackHoleMs),
    ending: deal.pick(['resume', 'reset'] as const),
  })
const cut =
  (direction: Direction): Card =>
  (deal) => {
    const [link, afterBytes] = [deal.link(), deal.scaled(limits.cutAfterBytes)]
    return { kind: 'cut', link, direction, afterBytes, forMs: limits.cutMs }
  }

/** The faults of one deck. Each deck is shuffled: every kind of fault happens, at unpredictable times. */
const deck: readonly Card[] = [
  kill('api'),
  kill('worker'),
  kill('worker'),
  kill('redis'),
  kill('clickhouse'),
  kill('api', 'worker', 'redis', 'clickhouse'),
  (deal, isLong) =>
    deal.freeze(deal.process('worker'), isLong ? limits.longFreezeMs : deal.scaled(limits.freezeMs)),
  (deal) => deal.freeze(deal.process('api', 'redis', 'clickhouse'), deal.scaled(limits.freezeMs)),
  (deal) => {
    const process = deal.process('api', 'worker', 'redis', 'clickhouse')
    return { kind: 'terminate', process, downMs: deal.between(limits.downMs) }
  },
  (deal) => ({ kind: 'reset', link: deal.link() }),
  blackHole(({ to }) => to === 'clickhouse'),
  blackHole(),
  cut('request'),
  cut('answer'),
  (deal) => ({ kind: 'silence', link: deal.link(({ from }) => from !== 'clients') }),
  (deal) => {
    const link = deal.link(({ from, to }) => from === 'worker' && to === 'clickhouse')
    return { kind: 'unplug', link, forMs: deal.between(limits.unplugMs) }
  },
  (deal) => ({ kind: 'outage', server: 'redis', forMs: deal.between(limits.outageMs) }),
  (deal) => {
    const [process, shiftMs] = [deal.process('api', 'worker'), deal.pick(limits.clockShiftMs)]
    return { kind: 'clock', process, shiftMs, forMs: deal.between(limits.clockMs) }
  },
]

/** One of them is added to each deck of a long run, in rotation. The second one of these decks has a long freeze. */
const longCards: readonly (Card | undefined)[] = [
  undefined,
  undefined,
  (deal) => ({ kind: 'memory', bytes: deal.pick(limits.memoryBytes), forMs: limits.memoryMs }),
  () => ({ kind: 'rule', forMs: limits.ruleMs }),
]
const LONG_FREEZE_DECK = 1

export interface PlanOptions {
  readonly seed: number
  readonly durationMs: number
  readonly topology: Topology
  /** Whether the disks of Redis and ClickHouse can lose their power. */
  readonly hasPowerCuts: boolean
  /** The duration of one deck. A shorter one has the same faults at shorter intervals. Default: `limits.deckMs` */
  readonly deckMs?: number | undefined
}

/** The faults of a run, ordered by time. The same arguments return the same faults. */
export function planFaults(options: PlanOptions): Fault[] {
  const { durationMs, hasPowerCuts, deckMs = limits.deckMs } = options
  const random = seededRandom(options.seed)
  const powerCards = hasPowerCuts ? [power('redis'), power('clickhouse')] : []
  const faults: Fault[] = []
  let atMs = 0
  const deal = dealer(random, options.topology, () => atMs)
  for (let number = 0; number * deckMs < durationMs; number += 1) {
    const ofLong = durationMs >= limits.longFaultDurationMs ? number % longCards.length : 0
    const cards = [...deck, ...powerCards, longCards[ofLong]].filter((card) => card !== undefined)
    const slotMs = deckMs / cards.length
    for (const [slot, card] of shuffle(random, cards).entries()) {
      atMs = Math.round(number * deckMs + (slot + random()) * slotMs)
      faults.push({ atMs, ...card(deal, ofLong === LONG_FREEZE_DECK) })
    }
  }
  return faults.filter((fault) => fault.atMs < durationMs)
}

export function describeFault(fault: Fault): string {
  const { atMs, kind, ...details } = fault
  const words = Object.entries(details).map(([name, value]) =>
    name === 'process' || name === 'link' ? String(value) : `${name}=${String(value)}`,
  )
  return `${(atMs / 1000).toFixed(3).padStart(9)} s  ${kind.padEnd(10)} ${words.join('  ')}`
}

function dealer(random: Random, { processes, links }: Topology, nowMs: () => number): Dealer {
  const frozenUntilMs = new Map<string, number>()
  const awakeMs = (name: string): number => Math.max(nowMs(), frozenUntilMs.get(name) ?? 0)
  return {
    between: ({ min, max }) => integer(random, min, max),
    scaled: ({ min, max }) => logInteger(random, min, max),
    pick: (items) => pick(random, items),
    process: (...roles) => {
      const role = pick(random, roles)
      const names = processes.filter((place) => place.role === role).map(({ name }) => name)
      const soonestMs = Math.min(...names.map(awakeMs))
      const awake = names.filter((name) => awakeMs(name) === soonestMs)
      return pick(random, awake)
    },
    link: (isEligible = () => true) => pick(random, links.filter(isEligible)).name,
    freeze: (process, forMs) => {
      frozenUntilMs.set(process, Math.max(frozenUntilMs.get(process) ?? 0, nowMs() + forMs))
      return { kind: 'freeze', process, forMs }
    },
  }
}
