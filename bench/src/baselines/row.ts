import { randomUUID } from 'node:crypto'
import type { Entry } from '@sluice/schema'

/** The BullMQ queue of the job-per-entry baseline. Each job holds one row. */
export const rowQueue = { name: 'entries', jobName: 'entry' } as const

/** An entry as the baselines store it: the columns of migrations/0001-logs.sql. */
export interface Row extends Omit<Entry, 'timestamp' | 'metadata'> {
  /** ClickHouse stores an object in a String column as its JSON text. */
  readonly metadata_text: Record<string, unknown>
  readonly id: string
  readonly project_id: string
  readonly timestamp: string
  readonly received_at: string
  readonly expires_on: string
}

const RETENTION_MS = 30 * 86_400_000

export function toRow(entry: Entry, projectId: string, receivedAtMs: number): Row {
  const receivedAt = new Date(receivedAtMs).toISOString()
  const { level, message, service, environment, source, url, pathname, stack, metadata } = entry
  return {
    id: randomUUID(),
    project_id: projectId,
    timestamp: entry.timestamp ?? receivedAt,
    received_at: receivedAt,
    expires_on: new Date(receivedAtMs + RETENTION_MS).toISOString().slice(0, 10),
    level,
    message,
    ...(service === undefined ? {} : { service }),
    ...(environment === undefined ? {} : { environment }),
    ...(source === undefined ? {} : { source }),
    ...(url === undefined ? {} : { url }),
    ...(pathname === undefined ? {} : { pathname }),
    ...(stack === undefined ? {} : { stack }),
    metadata_text: metadata ?? {},
  }
}
