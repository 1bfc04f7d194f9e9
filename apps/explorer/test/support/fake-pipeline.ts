import type { DeadLetterGroup, Figures, PipelineAnswer, Retry } from '../../src/pipeline.ts'

const process = {
  version: '0.2.0',
  pid: 17,
  uptime_s: 8100,
  is_silent: false,
}
const silent = { is_silent: true, rates: null }
const unready = { not_ready: 'ClickHouse does not answer', rates: { stored: 0, dead_lettered: 0 } }

function figuresAt(index: number, isBad: boolean): Figures {
  const wave = (mean: number, share: number, of = 7): number =>
    mean * (1 + share * Math.sin(index / of) + 0.05 * Math.sin(index * 1.7))
  const stuck = Math.max(0, index - 119) / 60
  const bad = isBad && stuck > 0
  return {
    accepted: wave(41_000, 0.1, 20),
    stored: bad ? 0 : wave(41_000, 0.12, 20),
    rejected: isBad && index > 150 ? 800 : index % 40 === 0 ? 3 : 0,
    dead_lettered: isBad && index > 100 && index < 120 ? 40 : 0,
    backlog: Math.round(bad ? 12_400_000 * stuck : wave(9000, 0.3)),
    oldest_age_s: bad ? 302 * stuck : wave(0.24, 0.3),
    lag_s: bad ? null : wave(0.64, 0.2),
    complete_behind_s: bad ? 302 * stuck : wave(0.9, 0.1),
  }
}

/** An installation that works, and one where no worker does. */
export function fakePipeline(nowMs: number, isBad: boolean): PipelineAnswer {
  const shard = {
    is_reachable: true,
    entries: 4120,
    waiting: 4,
    delayed: 0,
    in_hand: 3,
    failed: 0,
    oldest_age_s: 0.24,
  }
  const stuck = { ...shard, entries: 6_200_000, waiting: 3122, failed: 2, oldest_age_s: 302 }
  const rates = { accepted: 20_603.5, stored: isBad ? 0 : 20_490.2, dead_lettered: 0 }
  const worker = { ...process, role: 'worker', host: 'sluice-worker-7d9f', chunks_held: 67 }
  return {
    at: new Date(nowMs).toISOString(),
    ...figuresAt(179, isBad),
    history: Array.from({ length: 180 }, (_, index) => ({
      at: nowMs - (179 - index) * 5000,
      figures: figuresAt(index, isBad),
    })),
    shards: [0, 1].map((number) =>
      Object.assign({ rates: number === 1 && isBad ? null : rates }, isBad ? stuck : shard, {
        shard: number,
        is_reachable: number === 0 || !isBad,
      }),
    ),
    processes: [
      {
        ...process,
        id: 'a',
        role: 'api',
        host: 'sluice-api-5c6b',
        rates: { accepted: 41_207, rejected: isBad ? 800 : 0.4 },
      },
      { ...process, id: 'q', role: 'query', host: 'sluice-query-99d1', rates: {} },
      { ...worker, id: 'w1', pid: 18, rates: { stored: 20_490, dead_lettered: 0 }, ...(isBad && silent) },
      { ...worker, id: 'w2', pid: 19, rates: { stored: 20_490, dead_lettered: 0 }, ...(isBad && unready) },
    ],
    servers: [{ used_bytes: isBad ? 910e6 : 120e6, limit_bytes: 1000e6 }],
  }
}

export function fakeGroups(nowMs: number): DeadLetterGroup[] {
  const time = (agoMs: number): string => new Date(nowMs - agoMs).toISOString()
  const group = (code: string, reason: string, count: number, projects: string[]): DeadLetterGroup => ({
    code,
    reason,
    count,
    last_failed_at: time(130_000),
    projects,
    letters: Array.from({ length: Math.min(20, count) }, (_, index) => ({
      id: `01a1fb4e-a9e7-7c93-8c9d-f8683da${String(79_000 + index)}`,
      project_id: projects[index % projects.length] ?? '',
      failed_at: time(130_000 + index * 7000),
    })),
  })
  return [
    group('VIOLATED_CONSTRAINT', 'Constraint `amount_is_positive`', 1284, ['shop', 'billing']),
    group('CANNOT_PARSE_DATETIME', '', 31, ['web']),
    group('UNREADABLE_CHUNK', 'the frame cannot be read', 1, ['']),
  ]
}

export const fakeRetry = (choice: Retry['choice'], state: Retry['state'], inserted: number): Retry => ({
  choice,
  state,
  inserted,
  rejected: 0,
  reason: '',
})
