import { limits } from '@sluice/schema'
import type { IncomingHttpHeaders } from 'node:http'
import type { Amount } from './rate-limit.ts'

/** The shortest valid entry there is, with what parts it from the next one: `{"level":"log","message":""},`. */
const ENTRY_BYTES_MIN = 29

/**
 * What a request costs at least and at most, as far as its headers tell: a compressed body, or one without a length, may
 * be as large as any.
 */
export function estimateCost(headers: IncomingHttpHeaders): { least: Amount; most: Amount } {
  const encoding = headers['content-encoding']?.toLowerCase()
  const length = headers['content-length']
  if (length === undefined || (encoding !== undefined && encoding !== 'identity')) {
    return {
      least: { entries: 1, bytes: 1 },
      most: { entries: limits.entriesPerBatchMax, bytes: limits.bodyBytesMax },
    }
  }
  const bytes = Math.min(Number(length), limits.bodyBytesMax)
  const entries = Math.min(limits.entriesPerBatchMax, Math.ceil(bytes / ENTRY_BYTES_MIN))
  return { least: { entries: 1, bytes }, most: { entries: Math.max(1, entries), bytes } }
}
