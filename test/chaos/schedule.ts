import type { Direction } from './link.ts'
import { integer, logInteger, pick, seededRandom, shuffle, type Random } from './random.ts'
import type { LinkPlace, ProcessPlace, ProcessRole, Topology } from './topology.ts'

/** What happens, and when: milliseconds after the load has begun. */
export type Fault = { readonly atMs: number } & FaultKind

export type FaultKind =
  /** kill -9; started again after `downMs`. */
  | { readonly kind: 'kill'; readonly process: string; readonly downMs: number }
  /** SIGTERM; started again after `downMs`. */
  | { readonly kind: 'terminate'; readonly process: string; readonly downMs: number }
  /** SIGSTOP, and SIGCONT after `forMs`. */
  | { readonly kind: 'freeze'; readonly process: string; readonly forMs: number }
  /** Every connection of a link ends at once, by RST. */
  | { readonly kind: 'reset'; readonly link: string }
  /** A link accepts and forwards nothing; then it forwards what it held, or resets its connections. */
  | {
      readonly kind: 'black-hole'
      readonly link: string
      readonly direction: Direction | 'both'
      readonly forMs: number
      readonly ending: 'resume' | 'reset'
    }
  /** For `forMs`, each connection of a link ends after so many bytes in one direction: amid a request or an answer. */
  | {
      readonly kind: 'cut'
      readonly link: string
      readonly direction: Direction
      readonly afterBytes: number
      readonly forMs: number
    }

/** The schedule's limits, in milliseconds unless named otherwise. */
export const scheduleLimits = {
  /** A deck of faults is dealt in this time: 14 of them, so one every 3.4 s, and 7 to 8 kills a minute. */
  deckMs: 48_000,
  downMs: { min: 0, max: 5_000 },
  freezeMs: { min: 500, max: 20_000 },
  /** Past any lock: the queue gives the frozen worker's chunks to another. */
  longFreezeMs: 90_000,
  /** Of a schedule that has the time for long freezes, every so many decks have one. */
  longFreezeEveryDecks: 4,
  longFreezeDurationMs: 300_000,
  /** Longer than the API's patience with Redis (2 s) and, at its end, than the workers' lock. */
  blackHoleMs: { min: 500, max: 8_000 },
  cutMs: 3_000,
  /** From within the first line to past the end of a usual request or batch. */
  cutAfterBytes: { min: 1, max: 16_384 },
} as const

/** Deals one fault of its kind. */
type Card = (dealer: Dealer, deck: number) => FaultKind

/** What is dealt again and again, in another order each time: so every kind comes up, and none at a fixed time. */
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
]

/** The faults of a run, in the order of their times. The same arguments give the same faults. */
export function planFaults(options: { seed: number; durationMs: number; topology: Topology }): Fault[] {
  const { durationMs, topology } = options
  const random = seededRandom(options.seed)
  const dealer = new Dealer(random, topology, durationMs)
  const slotMs = scheduleLimits.deckMs / deck.length
  const faults: Fault[] = []
  for (let number = 0; number * scheduleLimits.deckMs < durationMs; number += 1) {
    for (const [slot, card] of shuffle(random, deck).entries()) {
      const atMs = Math.round(number * scheduleLimits.deckMs + (slot + random()) * slotMs)
      dealer.atMs = atMs
      faults.push({ atMs, ...card(dealer, number) })
    }
  }
  return faults.filter(({ atMs }) => atMs < durationMs)
}

/** For people, on one line. */
export function describeFault(fault: Fault): string {
  const { atMs, kind, ...details } = fault
  const words = Object.entries(details).map(([name, value]) =>
    name === 'process' || name === 'link' ? String(value) : `${name}=${String(value)}`,
  )
  return `${(atMs / 1000).toFixed(3).padStart(9)} s  ${kind.padEnd(10)} ${words.join('  ')}`
}

/** Draws from the generator, and remembers who is frozen: another fault, if it can hit somebody else, does. */
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

  link(isMeant: (link: LinkPlace) => boolean): string {
    return this.pick(this.#topology.links.filter(isMeant)).name
  }

  freeze(name: string, forMs: number): void {
    const untilMs = Math.max(this.#frozenUntilMs.get(name) ?? 0, this.atMs + forMs)
    this.#frozenUntilMs.set(name, untilMs)
  }

  hasLongFreeze(number: number): boolean {
    const { longFreezeDurationMs, longFreezeEveryDecks } = scheduleLimits
    return this.#durationMs >= longFreezeDurationMs && number % longFreezeEveryDecks === 1
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

function blackHole(dealer: Dealer, isMeant: (link: LinkPlace) => boolean): FaultKind {
  return {
    kind: 'black-hole',
    link: dealer.link(isMeant),
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
