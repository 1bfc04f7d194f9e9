import { pause } from './waiting.ts'

/** The interval at which one process of an installation reads the state of the queues, and a margin. */
export const REPORTED_WITHIN_MS = 20_000
const POLL_MS = 500

/** The samples of a page `/metrics`: the value of each series, by its name and labels as they are written there. */
export type Samples = ReadonlyMap<string, number>

export async function scrape(opsUrl: string): Promise<Samples> {
  const response = await fetch(`${opsUrl}/metrics`, { signal: AbortSignal.timeout(REPORTED_WITHIN_MS) })
  if (!response.ok) throw new Error(`/metrics answers ${response.status}`)
  const lines = (await response.text()).matchAll(/^([^#].*) (\S+)$/gm)
  return new Map(
    [...lines].map(([, series = '', value = '']) => [series, Number(value.replace('Inf', 'Infinity'))]),
  )
}

/** The sum of all series of a metric, over several processes. @param label one label that the series must have, for example `stage="added"` */
export function sumOf(pages: readonly Samples[], metric: string, label = ''): number {
  return pages
    .flatMap((page) => [...page])
    .filter(([series]) => series.split('{', 1)[0] === metric && series.includes(label))
    .reduce((sum, [, value]) => sum + value, 0)
}

/** What became of the rows that were ever added to the queues, according to the metrics of all processes together. */
export interface Accounts {
  readonly added: number
  readonly inserted: number
  readonly deadLettered: number
  readonly removed: number
  readonly queued: number
}

/** Reads the accounts, until the metrics agree that nothing is queued, or until they should have. */
export async function readAccounts(opsUrls: readonly string[]): Promise<Accounts> {
  const giveUpAtMs = performance.now() + REPORTED_WITHIN_MS
  for (;;) {
    const pages = await Promise.all(opsUrls.map(scrape))
    const rows = (stage: string): number => sumOf(pages, 'sluice_rows_total', `stage="${stage}"`)
    const accounts = {
      added: rows('added'),
      inserted: rows('inserted'),
      deadLettered: rows('dead_lettered'),
      removed: rows('removed'),
      queued: sumOf(pages, 'sluice_queue_rows'),
    }
    if ((accounts.added > 0 && accounts.queued === 0) || performance.now() >= giveUpAtMs) return accounts
    await pause(POLL_MS)
  }
}
