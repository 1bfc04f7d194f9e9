import { makeRowPrefix, type RequestStamp, type RowPrefix } from '../../src/row-codec.ts'
import { toClickHouseTime } from '../../src/timestamps.ts'

/** The part that all rows of a request share, in rows of text. */
export interface TextPrefix extends RowPrefix {
  /** The first columns, up to the id. */
  readonly text: string
  /** The time of receipt in microseconds. */
  readonly receivedAt: string
}

const DAY_MS = 86_400_000

export function textPrefix(stamp: RequestStamp): TextPrefix {
  const prefix = makeRowPrefix(stamp)
  const receivedAtText = toClickHouseTime(stamp.receivedAtMs)
  const expiresOn = new Date(prefix.expiresOn * DAY_MS).toISOString().slice(0, 10)
  return {
    ...prefix,
    text: `${stamp.projectId}\t${receivedAtText}\t${expiresOn}\t`,
    receivedAt: `${receivedAtText}000`,
  }
}
