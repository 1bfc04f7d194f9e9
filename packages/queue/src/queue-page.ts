import { hash } from 'node:crypto'
import { type ChunkState, type ChunkSummary, SUMMARIES_MAX } from './chunk-summaries.ts'
import type { ProcessReport } from './heartbeat.ts'
import type { ServerMemory, ShardReading } from './queue-gauge.ts'
import type { RowTotals } from './row-totals.ts'

const STYLE =
  ':root{color-scheme:light dark;font:14px system-ui,sans-serif}body{margin:2rem}table{border-collapse:collapse;margin-bottom:2rem}' +
  'th,td{text-align:left;padding:.3rem 1rem .3rem 0;border-bottom:1px solid #8884;white-space:nowrap}' +
  'td.number,th.number{text-align:right}code{font-size:13px}.bad{color:#c33}'

const REFRESH_S = 5

/** Nothing is loaded or executed, the page cannot be framed, and only this style applies. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
} as const

/** A shard, and what became of its rows. */
export interface ShardOverview extends ShardReading {
  /** False if the shard does not answer. Then the rest is its last reading. */
  readonly isCurrent: boolean
  /** Undefined if the shard does not answer. */
  readonly rows: number | undefined
  readonly totals: RowTotals | undefined
}

/** What `/queues` shows. */
export interface Overview {
  readonly shards: readonly ShardOverview[]
  readonly servers: readonly ServerMemory[]
  /** Undefined if they cannot be read. */
  readonly processes: readonly ProcessReport[] | undefined
}

/** What `/queues/N` shows: the chunks of each state, at most `SUMMARIES_MAX`. */
export interface ShardView {
  readonly shard: number
  readonly chunks: Readonly<Record<ChunkState, readonly ChunkSummary[]>>
}

/** HTML that is safe to insert. */
interface Html {
  readonly html: string
}

type Cell = string | number | Html

/** The page of all shards. */
export function overviewPage({ shards, servers, processes }: Overview): string {
  const failed = shards.reduce((sum, shard) => sum + shard.failed, 0)
  return page('Queues', [
    failed === 0
      ? ''
      : paragraph(
          'bad',
          `${number(failed)} failed chunks wait for an operator: see \`sluice failed-chunks\`.`,
        ),
    heading('Shards'),
    table(
      [
        'Shard',
        'Answers',
        'Rows',
        'Waiting',
        'In hand',
        'Delayed',
        'Failed',
        'Oldest',
        'Added',
        'Stored',
        'Dead-lettered',
      ],
      shards.map((shard) => [
        link(`/queues/${shard.shard}`, `Shard ${shard.shard}`),
        shard.isCurrent ? 'yes' : bad('no: the last reading'),
        shard.rows ?? '',
        shard.waiting,
        shard.inHand,
        shard.delayed,
        shard.failed,
        `${shard.oldestAgeS.toFixed(1)} s`,
        shard.totals?.added ?? '',
        shard.totals?.inserted ?? '',
        shard.totals?.deadLettered ?? '',
      ]),
    ),
    heading('Processes'),
    processes === undefined
      ? paragraph('bad', 'Unknown: they cannot be read.')
      : table(
          ['Process', 'Host', 'PID', 'Version', 'Uptime', 'Chunks in hand', 'State'],
          processes.map(processCells),
        ),
    heading('Redis'),
    table(
      ['Server', 'Used bytes', 'Limit in bytes'],
      servers.map(({ server, usedBytes, limitBytes }) => [server, usedBytes, limitBytes]),
    ),
  ])
}

function processCells({ role, host, pid, version, uptimeS, chunksHeld, notReady }: ProcessReport): Cell[] {
  const state = notReady === undefined ? 'ready' : bad(`not ready: ${notReady}`)
  return [role, host, String(pid), version, `${number(uptimeS)} s`, chunksHeld ?? '', state]
}

const titles: Readonly<Record<ChunkState, string>> = {
  failed: 'Failed, the last ones first',
  inHand: 'In hand of workers, the first ones fetched',
  waiting: 'Waiting, the next ones to be fetched',
  delayed: 'Delayed: in a format that the workers do not know',
}

/** The page of one shard. */
export function shardPage({ shard, chunks }: ShardView): string {
  const states = Object.keys(titles) as ChunkState[]
  return page(`Shard ${shard}`, [
    `<p>${link('/queues', 'All shards').html}</p>`,
    paragraph('', `Up to ${SUMMARIES_MAX} chunks of each state, without their rows.`),
    ...states.flatMap((state) => [
      heading(titles[state]),
      chunks[state].length === 0 ? paragraph('', 'None.') : chunkTable(chunks[state], state === 'failed'),
    ]),
  ])
}

function chunkTable(chunks: readonly ChunkSummary[], isFailed: boolean): string {
  const headings = ['Chunk', 'Received', 'Rows', 'Bytes of rows', 'Bytes in Redis', 'Columns', 'Batch']
  return table(
    isFailed ? [...headings, 'Failed', 'Reason'] : headings,
    chunks.map(({ id, receivedAtMs, rows, bytes, storedBytes, columns, batchId, failure }) => [
      code(id),
      receivedAtMs === undefined ? '' : time(receivedAtMs),
      rows ?? bad('unknown format'),
      bytes ?? '',
      storedBytes,
      columns ?? '',
      code(batchId ?? ''),
      ...(isFailed ? [failure === undefined ? '' : time(failure.atMs), failure?.reason ?? ''] : []),
    ]),
  )
}

function page(title: string, parts: readonly string[]): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)} – Sluice</title>
<meta http-equiv="refresh" content="${REFRESH_S}"><style>${STYLE}</style></head>
<body><h1>${escapeHtml(title)}</h1>
${parts.join('\n')}
</body></html>
`
}

function table(headings: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const isNumber = headings.map((_, column) => rows.some((row) => typeof row[column] === 'number'))
  const cells = (tag: 'td' | 'th', row: readonly Cell[]): string =>
    row
      .map(
        (cell, column) =>
          `<${tag}${isNumber[column] === true ? ' class="number"' : ''}>${htmlOf(cell)}</${tag}>`,
      )
      .join('')
  const lines = [cells('th', headings), ...rows.map((row) => cells('td', row))]
  return `<table>${lines.map((line) => `<tr>${line}</tr>`).join('\n')}</table>`
}

const heading = (text: string): string => `<h2>${escapeHtml(text)}</h2>`
const paragraph = (name: string, text: string): string =>
  `<p${name === '' ? '' : ` class="${name}"`}>${escapeHtml(text)}</p>`
const link = (path: string, text: string): Html => ({ html: `<a href="${path}">${escapeHtml(text)}</a>` })
const code = (text: string): Html => ({ html: `<code>${escapeHtml(text)}</code>` })
const bad = (text: string): Html => ({ html: `<span class="bad">${escapeHtml(text)}</span>` })
const number = (value: number): string => value.toLocaleString('en-US')

function time(ms: number): string {
  // Beyond the range of dates, the id or the record is not one of Sluice.
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : ''
}

function htmlOf(cell: Cell): string {
  if (typeof cell === 'number') return number(cell)
  return typeof cell === 'string' ? escapeHtml(cell) : cell.html
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')
}
