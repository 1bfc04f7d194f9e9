import { eventually, within } from '@sluice/harness'
import { Ports } from '@sluice/local'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { RulesFile } from './alert-rules.ts'

const STOP_DEADLINE_MS = 10_000
const ANSWER_DEADLINE_MS = 10_000
const SCRAPE_INTERVAL = '1s'

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface RuleStatus {
  readonly name: string
  readonly health: string
  readonly lastError?: string
}

export interface PrometheusOptions {
  readonly rules: RulesFile
  /** The name of the scrape job. */
  readonly job: string
  /** The URLs of ops servers. */
  readonly targets: readonly string[]
}

/** A Prometheus of the PATH that scrapes ops servers every second. */
export class PrometheusServer {
  readonly #folder: string
  readonly #url: string
  readonly #child: ChildProcess

  private constructor(folder: string, port: number, child: ChildProcess) {
    this.#folder = folder
    this.#url = `http://127.0.0.1:${port}`
    this.#child = child
  }

  static async start({ rules, job, targets }: PrometheusOptions): Promise<PrometheusServer> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-prometheus-'))
    await writeFile(join(folder, 'rules.yml'), stringify(rules))
    const config = {
      global: { scrape_interval: SCRAPE_INTERVAL, evaluation_interval: SCRAPE_INTERVAL },
      rule_files: ['rules.yml'],
      scrape_configs: [
        { job_name: job, static_configs: [{ targets: targets.map((url) => new URL(url).host) }] },
      ],
    }
    await writeFile(join(folder, 'prometheus.yml'), stringify(config))
    return new Ports().startOn(undefined, async (port) => {
      const log = openSync(join(folder, 'log'), 'a')
      const child = spawn(
        'prometheus',
        [
          `--config.file=${join(folder, 'prometheus.yml')}`,
          `--storage.tsdb.path=${join(folder, 'data')}`,
          `--web.listen-address=127.0.0.1:${port}`,
        ],
        { stdio: ['ignore', log, log] },
      )
      closeSync(log)
      await once(child, 'spawn')
      const server = new PrometheusServer(folder, port, child)
      await eventually(() => server.#awaitReady())
      return server
    })
  }

  /** The present value of each series of an expression. */
  async query(expression: string): Promise<Sample[]> {
    const { result } = await this.#get<{
      result: { metric: Record<string, string>; value: [number, string] }[]
    }>(`query?query=${encodeURIComponent(expression)}`)
    return result.map(({ metric, value: [, text] }) => ({ labels: metric, value: numberOf(text) }))
  }

  /** The names of the alerts that fire now. */
  async firing(): Promise<ReadonlySet<string>> {
    const { alerts } = await this.#get<{ alerts: { state: string; labels: Record<string, string> }[] }>(
      'alerts',
    )
    const firing = alerts.filter(({ state }) => state === 'firing')
    return new Set(firing.map(({ labels }) => labels['alertname'] ?? ''))
  }

  async rules(): Promise<RuleStatus[]> {
    const { groups } = await this.#get<{ groups: { rules: RuleStatus[] }[] }>('rules')
    return groups.flatMap(({ rules }) => rules)
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await within(STOP_DEADLINE_MS, 'the stop of Prometheus', exited).catch(() => this.#child.kill('SIGKILL'))
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #awaitReady(): Promise<void> {
    if (this.#child.exitCode !== null)
      throw new Error(`Prometheus has exited: ${readFileSync(join(this.#folder, 'log'), 'utf8')}`)
    const response = await fetch(`${this.#url}/-/ready`, { signal: AbortSignal.timeout(ANSWER_DEADLINE_MS) })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`Prometheus is not ready: ${response.status}`)
  }

  async #get<Data>(path: string): Promise<Data> {
    const response = await fetch(`${this.#url}/api/v1/${path}`, {
      signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
    })
    const answer = (await response.json()) as { status: string; data: Data; error?: string }
    if (answer.status !== 'success') throw new Error(answer.error)
    return answer.data
  }
}

function numberOf(text: string): number {
  return text.endsWith('Inf') ? Number(text.replace('Inf', 'Infinity')) : Number(text)
}
