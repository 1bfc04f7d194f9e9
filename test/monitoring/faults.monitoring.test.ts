// Needs prometheus: `npm run test:release -- monitoring`. Each fault is real. Only the times of the rules are shorter.
import { eventually, pause } from '@sluice/harness'
import { type ApiApp, type Installation, startApi } from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runSluice } from '../sluice-command.ts'
import { isAlert, readRules, rulesOf } from './alert-rules.ts'
import { MonitoredInstallation, type Sender } from './monitored-installation.ts'

const FIRING_DEADLINE_MS = 60_000
const OVER_DEADLINE_MS = 90_000
const FAULT_DEADLINE_MS = FIRING_DEADLINE_MS + OVER_DEADLINE_MS + 30_000
/** The load fills it within seconds. */
const REDIS_BYTES = 64 * 1024 * 1024
const MINUTE_MS = 60_000
const POLL_INTERVAL_MS = 200

let monitored: MonitoredInstallation
let installation: Installation
let senders: Sender[] = []
const fired = new Set<string>()
const alerts = rulesOf(await readRules())
  .filter(isAlert)
  .map(({ alert }) => alert)
/** They count the events of the last half hour or hour, so they do not end within a test. */
const remembering: ReadonlySet<string> = new Set(['SluiceRestarts', 'SluiceDeadLetters'])

beforeAll(async () => {
  monitored = await MonitoredInstallation.start({ redis: { memoryBytesMax: REDIS_BYTES } })
  ;({ installation } = monitored)
})

// What fires during a test is due to its fault.
beforeEach(async () => {
  const early = await lasting(...alerts.filter((alert) => !remembering.has(alert)))
  if (early.length > 0) throw new Error(`alerts fire without a fault: ${early.join(', ')}`)
}, FAULT_DEADLINE_MS)

afterEach(async () => {
  await Promise.all(senders.map((sender) => sender.stop()))
  senders = []
})

afterAll(() => monitored?.stop())

const normalLoad = { requestsPerS: 20, entriesPerRequest: 10, messageChars: 100 }

function send(options: Partial<Parameters<MonitoredInstallation['send']>[0]> = {}): Sender {
  const sender = monitored.send({ ...normalLoad, ...options })
  senders.push(sender)
  return sender
}

/** Waits until alerts fire together. @returns those that do not fire at the deadline */
async function missing(...names: readonly string[]): Promise<string[]> {
  return remaining(FIRING_DEADLINE_MS, (firing) => names.filter((name) => !firing.has(name)))
}

/** Waits until none of the alerts fires. @returns those that fire at the deadline */
async function lasting(...names: readonly string[]): Promise<string[]> {
  return remaining(OVER_DEADLINE_MS, (firing) => names.filter((name) => firing.has(name)))
}

async function remaining(
  deadlineMs: number,
  select: (firing: ReadonlySet<string>) => string[],
): Promise<string[]> {
  const endMs = performance.now() + deadlineMs
  for (;;) {
    const firing = await monitored.prometheus.firing()
    for (const name of firing) fired.add(name)
    const names = select(firing)
    if (names.length === 0 || performance.now() > endMs) return names
    await pause(POLL_INTERVAL_MS)
  }
}

async function command(...args: readonly string[]): Promise<void> {
  const { redisUrl, prefix } = installation
  const { code, stderr } = await runSluice(args, { REDIS_URL: redisUrl, SLUICE_PREFIX: prefix })
  if (code !== 0) throw new Error(stderr)
}

async function limitEntries(perSecond: string): Promise<void> {
  await command('projects', 'update', installation.projectId, '--entries-per-second', perSecond)
}

describe('processes', () => {
  it(
    'the only API process is killed',
    async () => {
      const { api } = installation.processes
      await api.stop({ signal: 'SIGKILL' })
      expect(await missing('SluiceNoApiReady', 'SluiceTargetDown')).toEqual([])
      await api.start()
      expect(await lasting('SluiceNoApiReady', 'SluiceTargetDown')).toEqual([])
    },
    FAULT_DEADLINE_MS,
  )

  it(
    'the only worker is killed three times',
    async () => {
      const { worker } = installation.processes
      for (let restarts = 0; restarts < 3; restarts += 1) {
        await worker.stop({ signal: 'SIGKILL' })
        expect(await missing('SluiceNoWorkerInserts')).toEqual([])
        await worker.start()
        // Prometheus must see each start.
        expect(await lasting('SluiceNoWorkerInserts', 'SluiceTargetDown')).toEqual([])
      }
      expect(await missing('SluiceRestarts')).toEqual([])
    },
    4 * FAULT_DEADLINE_MS,
  )
})

describe('ClickHouse', () => {
  it(
    'is stopped under load, while the oldest chunk is ten minutes old',
    async () => {
      const { clickhouse } = installation.processes
      send()
      await clickhouse.stop({ signal: 'SIGKILL' })
      await monitored.addOldChunk(10 * MINUTE_MS)
      expect(
        await missing(
          'SluiceNoWorkerInserts',
          'SluiceProcessNotReady',
          'SluiceEntriesLate',
          'SluiceBacklogGrowing',
        ),
      ).toEqual([])
      // All chunks of the outage are late when they are stored.
      await pause(15_000)
      await clickhouse.start()
      expect(await missing('SluiceLagHigh')).toEqual([])
      expect(
        await lasting(
          'SluiceNoWorkerInserts',
          'SluiceProcessNotReady',
          'SluiceEntriesLate',
          'SluiceBacklogGrowing',
          'SluiceLagHigh',
        ),
      ).toEqual([])
    },
    FAULT_DEADLINE_MS + 60_000,
  )

  it(
    'rejects rows',
    async () => {
      send()
      await monitored.addInvalidRows(150)
      expect(await missing('SluiceDeadLetters', 'SluiceRowsRejected')).toEqual([])
      expect(await lasting('SluiceRowsRejected')).toEqual([])
    },
    FAULT_DEADLINE_MS,
  )
})

describe('Redis', () => {
  it(
    'is frozen',
    async () => {
      const { redis } = installation.processes
      send()
      redis.kill('SIGSTOP')
      try {
        expect(await missing('SluiceRequestsFailing', 'SluiceQueueMetricsMissing')).toEqual([])
      } finally {
        redis.kill('SIGCONT')
      }
      expect(await lasting('SluiceRequestsFailing', 'SluiceQueueMetricsMissing')).toEqual([])
    },
    FAULT_DEADLINE_MS,
  )

  it(
    'pauses for longer than a second again and again',
    async () => {
      const { redis } = installation.processes
      send()
      const pausing = new AbortController()
      const pauses = (async () => {
        while (!pausing.signal.aborted) {
          redis.kill('SIGSTOP')
          await pause(1_300)
          redis.kill('SIGCONT')
          await pause(300)
        }
      })()
      try {
        expect(await missing('SluiceAcksSlow')).toEqual([])
      } finally {
        pausing.abort()
        await pauses
      }
      expect(await lasting('SluiceAcksSlow')).toEqual([])
    },
    FAULT_DEADLINE_MS,
  )

  it(
    'fills up while no worker runs',
    async () => {
      const { worker } = installation.processes
      await worker.stop()
      send({ requestsPerS: 20, entriesPerRequest: 100, messageChars: 1_000 })
      expect(await missing('SluiceRedisFullSoon', 'SluiceRedisMemoryHigh', 'SluiceRejectingEntries')).toEqual(
        [],
      )
      await worker.start()
      await Promise.all(senders.map((sender) => sender.stop()))
      expect(await lasting('SluiceRedisFullSoon', 'SluiceRedisMemoryHigh', 'SluiceRejectingEntries')).toEqual(
        [],
      )
    },
    FAULT_DEADLINE_MS,
  )
})

describe('operators', () => {
  it(
    'a chunk fails, because its job is damaged',
    async () => {
      const { worker } = installation.processes
      const names = queueNames(installation.prefix)
      await worker.stop()
      const sender = send()
      const id = await eventually(async () => {
        const [oldest] = await monitored.redis.lrange(names.waitKey, -1, -1)
        if (oldest === undefined) throw new Error('no chunk waits')
        return oldest
      })
      await sender.stop()
      await monitored.redis.hset(names.jobKey(id), 'data', '{"v":')
      await worker.start()
      expect(await missing('SluiceFailedChunks')).toEqual([])
      await command('failed-chunks', 'purge', '--all')
      expect(await lasting('SluiceFailedChunks')).toEqual([])
    },
    FAULT_DEADLINE_MS,
  )

  it(
    'a project sends more than its limit',
    async () => {
      await limitEntries('20')
      send()
      expect(await missing('SluiceRateLimited')).toEqual([])
      await limitEntries('unlimited')
      expect(await lasting('SluiceRateLimited')).toEqual([])
    },
    FAULT_DEADLINE_MS,
  )
})

describe('an API process', () => {
  let api: ApiApp

  beforeAll(async () => {
    const { supervisor, redisUrl, prefix } = installation
    // On SIGUSR2 each turn of its event loop takes 300 ms, and on the next SIGUSR2 it does not any more.
    const blocker = `let blocking = false
      process.on('SIGUSR2', () => { blocking = !blocking })
      setInterval(() => { const untilMs = Date.now() + 300; while (blocking && Date.now() < untilMs); }, 10).unref()`
    api = await startApi(supervisor, {
      redisUrl,
      prefix,
      name: 'api-blocked',
      environment: {
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(blocker)}`,
        // Above 500 ms, the default, a scrape of this test would take longer than a second.
        EVENT_LOOP_DELAY_HIGH_MS: '200',
        EVENT_LOOP_DELAY_LOW_MS: '100',
      },
    })
    await monitored.prometheus.scrape(api.opsUrl)
  })

  afterAll(async () => {
    await monitored.prometheus.forget(api.opsUrl)
    await api?.process.stop()
  })

  it(
    'has more work than its event loop can do',
    async () => {
      send({ apiUrl: api.url })
      api.process.kill('SIGUSR2')
      expect(await missing('SluiceEventLoopSlow', 'SluiceProcessOverloaded')).toEqual([])
      api.process.kill('SIGUSR2')
      expect(await lasting('SluiceEventLoopSlow', 'SluiceProcessOverloaded')).toEqual([])
    },
    FAULT_DEADLINE_MS,
  )
})

it('every alert has fired', () => {
  expect(alerts.filter((alert) => !fired.has(alert))).toEqual([])
})
