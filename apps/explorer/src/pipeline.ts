import { signal } from '@preact/signals'
import { type Api, ask, type Asked, wait } from './api.ts'
import { duration } from './times.ts'
import { plural } from './visible-text.ts'

type Rates = Readonly<Record<string, number>> | null
export type Shard = Readonly<Record<ShardNumber, number>> & {
  readonly is_reachable: boolean
  readonly rates: Rates
}
type ShardNumber = 'shard' | 'entries' | 'waiting' | 'delayed' | 'in_hand' | 'failed' | 'oldest_age_s'
export interface Process extends Readonly<Record<'id' | 'role' | 'host' | 'version', string>> {
  readonly pid: number
  readonly uptime_s: number
  readonly is_silent: boolean
  readonly not_ready?: string
  readonly chunks_held?: number
  readonly rates: Rates
}
export type FigureName =
  | 'accepted'
  | 'stored'
  | 'rejected'
  | 'dead_lettered'
  | 'backlog'
  | 'oldest_age_s'
  | 'lag_s'
  | 'complete_behind_s'
export type Figures = Readonly<Record<FigureName, number | null>>
/** Figures at a time, in ms since 1970. */
export interface Point {
  readonly at: number
  readonly figures: Figures
}
/** The state of the installation now, and in the last minutes. */
export interface PipelineAnswer extends Figures {
  readonly at: string
  readonly shards: readonly Shard[]
  readonly processes: readonly Process[]
  readonly servers: readonly { readonly used_bytes: number; readonly limit_bytes: number }[]
  readonly history: readonly Point[]
}
export interface DeadLetterGroup extends Readonly<Record<'code' | 'reason' | 'last_failed_at', string>> {
  readonly count: number
  readonly projects: readonly string[]
  readonly letters: readonly Readonly<Record<'id' | 'project_id' | 'failed_at', string>>[]
}
export type RetryChoice = { readonly id: string } | { readonly code: string; readonly reason: string }
export interface Retry {
  readonly choice: RetryChoice
  readonly state: 'waiting' | 'running' | 'done' | 'failed'
  readonly inserted: number
  readonly rejected: number
  readonly reason: string
}
interface DeadLetters {
  readonly total: number
  readonly groups: readonly DeadLetterGroup[]
  readonly retry: Retry | null
}

const POLL_MS = 2000

/** What the page of the pipeline shows, asked for again and again while it is seen. The last answer stays while the server gives none. */
export class PipelineWatch {
  readonly state = signal<Asked<PipelineAnswer>>({ loading: true })
  readonly deadLetters = signal<Asked<DeadLetters>>({ loading: true })
  readonly #api: Api

  constructor(api: Api) {
    this.#api = api
  }

  async watch(work: AbortSignal): Promise<void> {
    for (; !work.aborted; await wait(POLL_MS, work))
      if (document.visibilityState === 'visible')
        await Promise.all([
          ask(this.state, work, this.#api.get('pipeline', {}, work, 0), true),
          ask(this.deadLetters, work, this.#api.get('dead-letters', {}, work, 0), true),
        ])
  }
}

/** A line through the values of a figure, with a gap where one is unknown. Both axes go from 0 to 1, y downwards. */
export function linePath(
  points: readonly Point[],
  name: FigureName,
  fromMs: number,
  untilMs: number,
  max: number,
) {
  let command = 'M'
  return points
    .map(({ at, figures: { [name]: value } }) => {
      const x = (at - fromMs) / (untilMs - fromMs)
      const part = value === null ? '' : `${command}${x.toFixed(4)} ${(1 - value / max).toFixed(4)}`
      command = value === null ? 'M' : 'L'
      return part
    })
    .join('')
}

/** More than a restart takes. */
const OLD_S = 60
const MEMORY_SHARE_MAX = 0.8

const nameOf = ({ role, host, pid }: Process): string => `The ${role} ${host}/${pid}`

/** What needs attention, the worst first. */
export function findingsOf(
  state: PipelineAnswer,
  deadLetters: number,
): (readonly ['error' | 'warn', string])[] {
  const { shards, processes, servers, oldest_age_s: ageS, complete_behind_s: behindS } = state
  const failed = shards.reduce((sum, shard) => sum + shard.failed, 0)
  const fullest = Math.max(...servers.map((server) => server.used_bytes / server.limit_bytes))
  const isWorking = processes.some((process) => process.role === 'worker' && !process.is_silent)
  const isOld = (ageS ?? 0) > OLD_S
  const silent = processes.filter((process) => process.is_silent)
  const unready = processes.filter((process) => !process.is_silent && process.not_ready !== undefined)
  const all: (readonly [is: boolean, kind: 'error' | 'warn', text: string])[] = [
    [!isWorking, 'error', 'No worker is running: what is accepted waits in Redis.'],
    ...shards.map((each) => [!each.is_reachable, 'error', `Shard ${each.shard} does not answer.`] as const),
    ...unready.map((each) => [true, 'error', `${nameOf(each)} is not ready: ${each.not_ready}.`] as const),
    [failed > 0, 'error', `${plural(failed, 'chunk has', 'chunks have')} failed: sluice failed-chunks list`],
    ...silent.map((each) => [true, 'warn', `${nameOf(each)} has stopped reporting.`] as const),
    [isOld, 'warn', `The oldest entry has waited for ${duration(1000 * (ageS ?? 0))}.`],
    [
      !isOld && (behindS ?? 0) > OLD_S,
      'warn',
      `What is complete is ${duration(1000 * (behindS ?? 0))} behind.`,
    ],
    [fullest > MEMORY_SHARE_MAX, 'warn', `Redis has used ${Math.round(100 * fullest)} % of its memory.`],
    [deadLetters > 0, 'warn', `${plural(deadLetters, 'row was', 'rows were')} rejected by ClickHouse.`],
  ]
  return all.flatMap(([is, kind, text]) => (is ? [[kind, text] as const] : []))
}
