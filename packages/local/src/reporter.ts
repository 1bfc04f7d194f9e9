import { styleText } from 'node:util'
import type { Progress } from './installation.ts'
import type { KeepAliveReport } from './keep-alive.ts'
import type { LocalFile } from './local-file.ts'

/** Prints the progress of `npm start`, one line per event, in colour on a terminal. */
export class Reporter implements Progress, KeepAliveReport {
  readonly #write: (text: string) => void
  readonly #colours: boolean
  readonly #hidesSecrets: boolean

  /** @param hidesSecrets whether others may read the output, so that keys and passwords must not be in it */
  constructor(
    write: (text: string) => void,
    { colours, hidesSecrets }: { colours: boolean; hidesSecrets: boolean },
  ) {
    this.#write = write
    this.#colours = colours
    this.#hidesSecrets = hidesSecrets
  }

  note(text: string): void {
    this.#line(this.#paint('dim', '…'), text)
  }

  done(text: string, tookMs: number): void {
    this.#line(
      this.#paint('green', '✓'),
      `${text} ${this.#paint('dim', `(${(tookMs / 1000).toFixed(1)} s)`)}`,
    )
  }

  warn(text: string): void {
    this.#line(this.#paint('yellow', '!'), text)
  }

  /** @param details lines that help to find the cause */
  fail(text: string, details: readonly string[] = []): void {
    this.#line(this.#paint('red', '✗'), text)
    for (const detail of details) this.#write(`    ${detail}\n`)
  }

  blankLine(): void {
    this.#write('\n')
  }

  /** Prints how to use a Sluice that is ready. */
  welcome(
    local: LocalFile,
    { dataDir, isDefaultDataDir }: { dataDir: string; isDefaultDataDir: boolean },
  ): void {
    const heading = (text: string): string => this.#paint('bold', text)
    const commandDataDir = isDefaultDataDir ? undefined : dataDir
    const key = this.#hidesSecrets ? `in ${dataDir}/local.json` : local.apiKey
    const send = this.#hidesSecrets ? sendCommand(commandDataDir) : curlCommand(local)
    const play = this.#hidesSecrets ? '' : `\n  ${playUrl(local)}`
    this.#write(`
${heading('Sluice is ready.')} Press Ctrl-C to stop it. The data stays in ${dataDir}

  API      ${local.apiUrl}
  API key  ${key}  (project ${local.projectId})

${heading('Send an entry')}

  ${send}

${heading('See the logs')}

  ${logsCommand(local, commandDataDir)}${play}

`)
  }

  #line(symbol: string, text: string): void {
    this.#write(`${symbol} ${text}\n`)
  }

  #paint(format: 'bold' | 'dim' | 'green' | 'red' | 'yellow', text: string): string {
    return this.#colours ? styleText(format, text, { validateStream: false }) : text
  }
}

const exampleEntry = { level: 'info', message: 'Hello, Sluice', service: 'curl', metadata: { user: 42 } }

/** A shell command that sends an entry. */
export function curlCommand({ apiUrl, apiKey }: LocalFile): string {
  return (
    `curl -sS ${apiUrl}/v1/logs -H 'Authorization: Bearer ${apiKey}' ` +
    `-H 'Content-Type: application/json' -d '${JSON.stringify(exampleEntry)}'`
  )
}

/**
 * A shell command that shows the newest entries. It works in the root folder of the repository.
 *
 * @param dataDir undefined for the default one
 */
export function logsCommand({ projectId }: LocalFile, dataDir: string | undefined): string {
  return `${dataDirVariable(dataDir)}./sluice logs --project ${projectId} --follow`
}

/** A shell command that sends an entry, and takes the key from local.json. For `dataDir`, see `logsCommand`. */
export function sendCommand(dataDir: string | undefined): string {
  return `echo 'Hello, Sluice' | ${dataDirVariable(dataDir)}./sluice send`
}

function dataDirVariable(dataDir: string | undefined): string {
  return dataDir === undefined ? '' : `SLUICE_DATA_DIR='${dataDir.replaceAll("'", String.raw`'\''`)}' `
}

/**
 * ClickHouse's query page, with the credentials, and with a query that runs at once. As in `sluice logs`, entries of the
 * future must not hide current ones.
 */
export function playUrl({ clickhouse, projectId }: LocalFile): string {
  const query =
    `SELECT timestamp, level, service, message, metadata\nFROM ${clickhouse.database}.logs\n` +
    `WHERE project_id = '${projectId}' AND timestamp < now() + INTERVAL 1 HOUR\nORDER BY timestamp DESC\nLIMIT 100`
  const url = new URL('/play', clickhouse.url)
  url.searchParams.set('user', clickhouse.username)
  url.searchParams.set('password', clickhouse.password)
  url.searchParams.set('run', '1')
  url.hash = Buffer.from(query).toString('base64')
  return url.href
}
