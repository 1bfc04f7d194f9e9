import { fork } from 'node:child_process'
import { once } from 'node:events'
import { type ProcessLogger, runProcess, withTimeout } from '@sluice/runtime'
import { type Answer, listenForOperators } from './ops-server.ts'

/** Less than the three seconds of the health check. */
const ANSWER_DEADLINE_MS = 2_500

const COPY = '--copy'

export const isCopy = (): boolean => process.argv.includes(COPY)

interface CopiesOptions {
  readonly logger: ProcessLogger
  readonly config: Readonly<{ SHUTDOWN_DEADLINE_MS: number; OPS_HOST: string; OPS_PORT: number }>
  readonly count: number
  /** @returns settings of the copies in which they differ from this process */
  readonly prepare?: () => Promise<NodeJS.ProcessEnv>
}

/**
 * Runs copies of this program in processes of their own, and does nothing else: it stops them, and answers operators for all. It never
 * returns.
 *
 * - They are not a `node:cluster`, whose first process would accept all connections and hand each over in a message. The copies accept
 *   their connections themselves (`SO_REUSEPORT`).
 * - If one exits, the others are stopped too, and this process fails: whatever restarts it (Docker, Kubernetes, systemd) waits longer each
 *   time and reports it, while a restart from here would hide a copy that fails again and again.
 * - The end of the channel to this process stops a copy in order, so they also stop if this process is killed.
 */
export async function runCopies({ logger, config, count, prepare }: CopiesOptions): Promise<never> {
  await runProcess({
    logger,
    deadlineMs: config.SHUTDOWN_DEADLINE_MS,
    start: async (resources) => {
      const env = { ...process.env, ...(await prepare?.()), OPS_HOST: '127.0.0.1', OPS_PORT: '0' }
      const copies = Array.from({ length: count }, () => startCopy(env))
      let stopping = false
      const stop = async (): Promise<void> => {
        stopping = true
        for (const { child } of copies) if (child.connected) child.disconnect()
        const exits = await Promise.all(copies.map(({ exited }) => exited))
        if (exits.some((code) => code !== 0)) throw new Error('a process did not stop in order')
      }
      for (const { child, exited } of copies) {
        // If it rejects, this process ends.
        void exited.then(async (code) => {
          if (stopping) return
          logger.fatal({ exitedPid: child.pid, code, signal: child.signalCode }, 'stopping all processes')
          await withTimeout(stop(), config.SHUTDOWN_DEADLINE_MS).catch(() => undefined)
          throw new Error(`process ${child.pid} exited by itself`)
        })
      }
      const urls = await Promise.all(copies.map(({ opsUrl }) => opsUrl))
      const ops = resources.closeAtEnd(
        await listenForOperators(config.OPS_HOST, config.OPS_PORT, (path) => askAll(urls, path)),
      )
      resources.defer(stop)
      logger.info({ processes: count, opsUrl: ops.url }, 'running')
      return ops.url
    },
  })
  // The signal ends this process.
  return new Promise(() => undefined)
}

/** @returns with its exit code, null after a signal, and the address of its ops server as soon as that listens */
function startCopy(env: NodeJS.ProcessEnv) {
  const child = fork(process.argv[1] ?? '', [COPY], { env })
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  const opsUrl = once(child, 'message').then(([message]) => (message as { opsUrl: string }).opsUrl)
  return { child, exited, opsUrl }
}

/** The answers of all as one: with the worst status, and the samples of each with a label of their own. */
async function askAll(urls: readonly string[], path: string): Promise<Answer> {
  const answers = await Promise.all(urls.map((url) => ask(`${url}${path}`)))
  const status = Math.max(...answers.map((answer) => answer.status))
  const type = answers[0]?.type ?? ''
  const texts = answers.map(({ text }) => text)
  if (path !== '/metrics') return { status, type, text: `{"processes":[${texts.join()}]}` }
  return answers.find((answer) => answer.status !== 200) ?? { status, type, text: mergeMetrics(texts) }
}

async function ask(url: string): Promise<Answer> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_DEADLINE_MS) })
    const type = response.headers.get('content-type') ?? ''
    return { status: response.status, type, text: await response.text() }
  } catch (error) {
    const body = { status: 'no answer', error: String(error) }
    return { status: 503, type: 'application/json', text: JSON.stringify(body) }
  }
}

/** Merges pages in the text format of Prometheus, which has all samples of a metric together. Each gets the label `process`, from 1. */
export function mergeMetrics(pages: readonly string[]): string {
  const samples = new Map<string, string[]>()
  pages.forEach((page, index) => {
    let ofMetric: string[] = []
    for (const line of page.split('\n').filter((each) => each !== '')) {
      if (line.startsWith('#')) samples.set(line, (ofMetric = samples.get(line) ?? []))
      else
        ofMetric.push(
          line.replace(
            /^([^{ ]+)(\{?)/,
            (_, name: string, brace: string) => `${name}{process="${index + 1}"${brace === '' ? '}' : ','}`,
          ),
        )
    }
  })
  return [...samples].map(([head, lines]) => `${[head, ...lines].join('\n')}\n`).join('')
}
