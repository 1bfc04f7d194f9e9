// Needs prometheus: `npm run test:release -- monitoring`. Each fault is real. Only the times of the rules are shorter.
import { eventually, pause } from '@sluice/harness'
import { type Installation, startApi } from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
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
let pausing: NodeJS.Timeout | undefined
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

async function stopSenders(): Promise<void> {
  await Promise.all(senders.map((sender) => sender.stop()))
  senders = []
}
afterEach(stopSenders)

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

interface Fault {
  readonly name: string
  readonly alerts: readonly string[]
  readonly begin: () => unknown
  readonly end: () => unknown
  /** Alerts that follow the end, and end too. */
  readonly later?: readonly string[]
}

const faults: readonly Fault[] = [
  {
    name: 'the only API process is killed',
    alerts: ['SluiceNoApiReady', 'SluiceTargetDown'],
    begin: () => installation.processes.api.stop({ signal: 'SIGKILL' }),
    end: () => installation.processes.api.start(),
  },
  {
    name: 'ClickHouse is stopped under load, while the oldest chunk is ten minutes old',
    alerts: ['SluiceNoWorkerInserts', 'SluiceProcessNotReady', 'SluiceEntriesLate', 'SluiceBacklogGrowing'],
    begin: async () => {
      send()
      await installation.processes.clickhouse.stop({ signal: 'SIGKILL' })
      await monitored.addOldChunk(10 * MINUTE_MS)
    },
    end: async () => {
      // All chunks of the outage are late when they are stored.
      await pause(15_000)
      await installation.processes.clickhouse.start()
    },
    later: ['SluiceLagHigh'],
  },
  {
    name: 'ClickHouse rejects rows',
    alerts: ['SluiceDeadLetters', 'SluiceRowsRejected'],
    begin: async () => {
      send()
      await monitored.addInvalidRows(150)
    },
    end: () => undefined,
  },
  {
    name: 'Redis is frozen',
    alerts: ['SluiceRequestsFailing', 'SluiceQueueMetricsMissing'],
    begin: () => {
      send()
      installation.processes.redis.kill('SIGSTOP')
    },
    end: () => installation.processes.redis.kill('SIGCONT'),
  },
  {
    name: 'Redis pauses for longer than a second again and again',
    alerts: ['SluiceAcksSlow'],
    begin: () => {
      send()
      pausing = setInterval(() => {
        installation.processes.redis.kill('SIGSTOP')
        setTimeout(() => installation.processes.redis.kill('SIGCONT'), 1_300)
      }, 1_600)
    },
    end: async () => {
      clearInterval(pausing)
      await pause(1_500)
    },
  },
  {
    name: 'Redis fills up while no worker runs',
    alerts: ['SluiceRedisFullSoon', 'SluiceRedisMemoryHigh', 'SluiceRejectingEntries'],
    begin: async () => {
      await installation.processes.worker.stop()
      send({ requestsPerS: 20, entriesPerRequest: 100, messageChars: 1_000 })
    },
    end: async () => {
      await installation.processes.worker.start()
      await stopSenders()
    },
  },
  {
    name: 'a chunk fails, because its job is damaged',
    alerts: ['SluiceFailedChunks'],
    begin: async () => {
      const names = queueNames(installation.prefix)
      await installation.processes.worker.stop()
      send()
      const id = await eventually(async () => {
        const [oldest] = await monitored.redis.lrange(names.waitKey, -1, -1)
        if (oldest === undefined) throw new Error('no chunk waits')
        return oldest
      })
      await stopSenders()
      await monitored.redis.hset(names.jobKey(id), 'data', '{"v":')
      await installation.processes.worker.start()
    },
    end: () => command('failed-chunks', 'purge', '--all'),
  },
  {
    name: 'a project sends more than its limit',
    alerts: ['SluiceRateLimited'],
    begin: async () => {
      await limitEntries('20')
      send()
    },
    end: () => limitEntries('unlimited'),
  },
]

it.each(faults)(
  '$name',
  async ({ alerts: expected, begin, end, later = [] }) => {
    try {
      await begin()
      expect(await missing(...expected)).toEqual([])
    } finally {
      await end()
    }
    expect(await missing(...later)).toEqual([])
    expect(await lasting(...[...expected, ...later].filter((alert) => !remembering.has(alert)))).toEqual([])
  },
  FAULT_DEADLINE_MS + 60_000,
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

it(
  'an API process has more work than its event loop can do',
  async () => {
    const { supervisor, redisUrl, prefix } = installation
    const expected = ['SluiceEventLoopSlow', 'SluiceProcessOverloaded']
    // On SIGUSR2 each iteration of its event loop takes 300 ms, and on the next SIGUSR2 it does not any more.
    const blocker = `let blocking = false
      process.on('SIGUSR2', () => { blocking = !blocking })
      setInterval(() => { const untilMs = Date.now() + 300; while (blocking && Date.now() < untilMs); }, 10).unref()`
    const api = await startApi(supervisor, {
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
    send({ apiUrl: api.url })
    api.process.kill('SIGUSR2')
    expect(await missing(...expected)).toEqual([])
    api.process.kill('SIGUSR2')
    expect(await lasting(...expected)).toEqual([])
    await stopSenders()
    await monitored.prometheus.forget(api.opsUrl)
    await api.process.stop()
  },
  FAULT_DEADLINE_MS,
)

it('every alert has fired', () => {
  expect(alerts.filter((alert) => !fired.has(alert))).toEqual([])
})
