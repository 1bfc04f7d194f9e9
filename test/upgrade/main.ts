// `npm run lab -- upgrade`: replaces processes of another version by those of this one and back, under load and kills, and counts what is stored.
import { migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import { pause, seededRandom } from '@sluice/harness'
import { CommandLine, randomSeed } from '@sluice/harness/command-line'
import { drainQueue } from '@sluice/harness/drain'
import { Journal } from '@sluice/harness/journal'
import { killUntil } from '@sluice/harness/kills'
import { Load } from '@sluice/harness/load'
import { describeSettlement, isExactlyOnce, settle } from '@sluice/harness/settle'
import { startTestServices } from '@sluice/harness/test-installation'
import * as own from '@sluice/local'
import { queueNames } from '@sluice/queue'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const commandLine = new CommandLine(`npm run lab -- upgrade --from COMMIT [options]

  --from COMMIT  the other version
  --seconds N    of each step; default 20
  --rate N       entries per second; default 300
  --seed S       default random

Exits with status 1 if an acknowledged entry is lost or duplicated.
`)
const values = commandLine.read({
  from: { type: 'string' },
  seconds: { type: 'string', default: '20' },
  rate: { type: 'string', default: '300' },
  seed: { type: 'string', default: randomSeed() },
})
const commit = values.from ?? commandLine.fail('--from is missing')
const stepMs = commandLine.positive('seconds', values.seconds) * 1_000
const entriesPerSecond = commandLine.positive('rate', values.rate)
const seed = commandLine.nonNegativeInteger('seed', values.seed)

type Role = 'api' | 'worker'
type Version = 'old' | 'new'
type App = Pick<own.ApiApp, 'process'> & Partial<own.ApiApp>

/** Processes of these roles replace the others, after half a step in which both run. At first, all are old. */
const steps: readonly (readonly [title: string, roles: readonly Role[], version: Version])[] = [
  ['an upgrade, workers first', ['worker'], 'new'],
  ['then APIs', ['api'], 'new'],
  ['a rollback, APIs first', ['api'], 'old'],
  ['then workers', ['worker'], 'old'],
  ['an upgrade, APIs first: the old worker leaves new chunks in the queue', ['api'], 'new'],
  ['then workers', ['worker'], 'new'],
  ['a rollback of both at once', ['api', 'worker'], 'old'],
  ['an upgrade of both at once', ['api', 'worker'], 'new'],
]
const PREFIX = 'upgrade'
/** As in the chaos test: the chunks of a killed worker are soon taken over. */
const environment = { LOCK_DURATION_MS: '5000' }

const root = fileURLToPath(new URL('../..', import.meta.url))
const random = seededRandom(seed)
const folder = mkdtempSync(join(tmpdir(), 'sluice-upgrade-'))
const log = (line: string): void => void process.stdout.write(`${line}\n`)
log(`seed ${seed}`)
try {
  const archive = join(folder, 'sources.tar')
  execFileSync('git', ['archive', `--output=${archive}`, commit], { cwd: root })
  execFileSync('tar', ['-xf', archive, '-C', folder])
  execFileSync(process.execPath, ['tools/install.mjs'], { cwd: folder, stdio: 'inherit' })
  process.exitCode = (await run()) ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exit()

async function run(): Promise<boolean> {
  const services = await startTestServices()
  const { supervisor, redisUrl, clickhouse } = services
  try {
    await migrate(clickhouse, await readMigrations(migrationsFolder))
    const apiKey = await own.withRegistry({ redisUrl, prefix: PREFIX }, (registry) =>
      own.provisionProject(registry, PREFIX),
    )
    const versions: Readonly<Record<Version, typeof own>> = {
      // Its functions start its own processes.
      old: (await import(join(folder, 'packages/local/src/index.ts'))) as typeof own,
      new: own,
    }
    const apiUrls: string[] = []
    const running = new Map<Role, App>()
    let started = 0
    const startNext = async (role: Role, version: Version): Promise<App> => {
      started += 1
      const options = {
        redisUrl,
        prefix: PREFIX,
        clickhouse,
        environment,
        name: `${version}-${role}-${started}`,
      }
      if (role === 'worker') return versions[version].startWorker(supervisor, options)
      const api = await versions[version].startApi(supervisor, options)
      apiUrls.push(api.url)
      return api
    }
    /** Kills these processes for half a step. */
    const endure = async (victims: readonly own.SupervisedProcess[]): Promise<void> => {
      const stopping = new AbortController()
      const killing = killUntil(stopping.signal, victims, random)
      await pause(stepMs / 2)
      stopping.abort()
      const [kills, queue] = [await killing, await drainQueue(redisUrl, queueNames(PREFIX), 0)]
      const { wait, active, delayed, failed } = queue
      log(
        `  ${victims.map(({ name }) => name).join(', ')}: kills ${JSON.stringify(kills)}, ` +
          `${journal.count('acknowledged')} acknowledged, chunks: ${wait + active} waiting or in hand, ${delayed} delayed, ${failed} failed`,
      )
    }
    const journal = new Journal(PREFIX)
    for (const role of ['api', 'worker'] as const) running.set(role, await startNext(role, 'old'))
    const load = new Load({ journal, apiUrls, apiKey, random, entriesPerSecond })
    load.start()
    const processes = (): own.SupervisedProcess[] => [...running.values()].map(({ process }) => process)
    await endure(processes())
    for (const [title, roles, version] of steps) {
      log(title)
      const replaced = roles.flatMap((role) => running.get(role) ?? [])
      for (const role of roles) running.set(role, await startNext(role, version))
      await endure([...processes(), ...replaced.map(({ process }) => process)])
      for (const { process, url } of replaced) {
        if (url !== undefined) apiUrls.splice(apiUrls.indexOf(url), 1)
        await process.stop()
      }
      await endure(processes())
    }
    await load.stop()
    const drained = (): Promise<unknown> => Promise.all(processes().map((each) => each.stop()))
    const settlement = await settle({ redisUrl, shards: [queueNames(PREFIX)], clickhouse }, journal, {
      drained,
    })
    log(describeSettlement(journal, settlement))
    log(`answers: ${JSON.stringify(Object.fromEntries(journal.answers))}`)
    return isExactlyOnce(settlement)
  } finally {
    await services.stop({ force: true })
  }
}
