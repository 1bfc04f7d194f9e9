import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import type { LocalFile } from '../src/local-file.ts'

const entry = fileURLToPath(new URL('../src/start.ts', import.meta.url))
const ARRIVAL_DEADLINE_MS = 60_000

/** A running `npm start`. */
export class StartCommand {
  readonly child: ChildProcess
  readonly exitCode: Promise<number | null>
  readonly #dataDir: string
  #output = ''

  private constructor(dataDir: string, child: ChildProcess) {
    this.#dataDir = dataDir
    this.child = child
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text
    })
    this.exitCode = new Promise((resolve) => child.once('exit', resolve))
  }

  /**
   * @param settings environment variables. PORT is 0 by default, which chooses a free one
   * @param output the descriptor of a file for the output. By default, the output is a pipe
   */
  static run(dataDir: string, settings: Record<string, string> = {}, output?: number): StartCommand {
    const child = spawn(process.execPath, [entry], {
      env: { PATH: process.env['PATH'], PORT: '0', SLUICE_DATA_DIR: dataDir, ...settings },
      stdio: ['ignore', output ?? 'pipe', 'inherit'],
    })
    return new StartCommand(dataDir, child)
  }

  /** Runs it by npm: from a script, in npm's shell. */
  static runByNpm(dataDir: string, folder: string): StartCommand {
    const start = `true && exec "${process.execPath}" "${entry}"`
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ scripts: { start } }))
    const child = spawn('npm', ['start'], {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: folder, PORT: '0', SLUICE_DATA_DIR: dataDir },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    return new StartCommand(dataDir, child)
  }

  get output(): string {
    return this.#output
  }

  get local(): LocalFile {
    return JSON.parse(readFileSync(join(this.#dataDir, 'local.json'), 'utf8')) as LocalFile
  }

  async prints(text: string): Promise<void> {
    await vi.waitFor(() => {
      if (!this.#output.includes(text)) throw new Error(`no "${text}" in:\n${this.#output}`)
    })
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
    return (await response.text()).split('\n').filter((line) => line !== '')
  }

  /** The locks of a worker that was killed expire after a while. */
  async arrives(message: string): Promise<void> {
    await vi.waitFor(async () => {
      if (!(await this.messages()).includes(message)) throw new Error(`${message} has not arrived`)
    }, ARRIVAL_DEADLINE_MS)
  }
}
