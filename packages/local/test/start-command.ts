import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import type { LocalFile } from '../src/local-run.ts'

const entry = fileURLToPath(new URL('../src/start.ts', import.meta.url))
const ARRIVAL_DEADLINE_MS = 60_000

interface Options {
  readonly args?: readonly string[]
  /** Environment variables. PORT is 0 by default, which chooses a free one. */
  readonly settings?: Readonly<Record<string, string>>
  /** The descriptor of a file for the output. By default, the output is a pipe. */
  readonly output?: number | undefined
  /** Where npm runs it from a script, in npm's shell. By default, it runs without npm. */
  readonly npmFolder?: string
}

/** A running `npm start`. */
export class StartCommand {
  readonly child: ChildProcess
  readonly exitCode: Promise<number | null>
  readonly #dataDir: string
  #output = ''

  constructor(dataDir: string, { args = [], settings, output, npmFolder }: Options = {}) {
    this.#dataDir = dataDir
    const start = `true && exec "${process.execPath}" "${entry}"`
    if (npmFolder !== undefined)
      writeFileSync(join(npmFolder, 'package.json'), JSON.stringify({ scripts: { start } }))
    const command = npmFolder === undefined ? [process.execPath, entry, ...args] : ['npm', 'start']
    this.child = spawn(command[0] ?? '', command.slice(1), {
      cwd: npmFolder,
      env: { PATH: process.env['PATH'], HOME: dataDir, PORT: '0', SLUICE_DATA_DIR: dataDir, ...settings },
      stdio: ['ignore', output ?? 'pipe', 'inherit'],
    })
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text
    })
    this.exitCode = new Promise((resolve) => this.child.once('exit', resolve))
  }

  get output(): string {
    return this.#output
  }

  get local(): LocalFile {
    return JSON.parse(readFileSync(join(this.#dataDir, 'local.json'), 'utf8')) as LocalFile
  }

  async prints(text: string): Promise<void> {
    await vi.waitUntil(() => this.#output.includes(text))
  }

  async isReady(): Promise<this> {
    await this.prints('Metrics ')
    return this
  }

  /** Sends an entry. @returns the HTTP status */
  async send(message: string): Promise<number> {
    const { apiUrl, apiKey } = this.local
    const response = await fetch(`${apiUrl}/v1/logs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ level: 'info', message }),
    })
    return response.status
  }

  /** The messages stored in ClickHouse. */
  async messages(): Promise<string[]> {
    const { url, username, password, database } = this.local.clickhouse
    const response = await fetch(`${url}/?database=${database}`, {
      method: 'POST',
      body: 'SELECT message FROM logs ORDER BY message FORMAT TSV',
      headers: { 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password },
    })
    if (!response.ok) throw new Error(await response.text())
    return (await response.text()).split('\n').filter(Boolean)
  }

  /** The locks of a worker that was killed expire after a while. */
  async arrives(message: string): Promise<void> {
    await vi.waitUntil(async () => (await this.messages()).includes(message), ARRIVAL_DEADLINE_MS)
  }
}
