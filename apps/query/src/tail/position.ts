import { isId } from '../cursor.ts'

/**
 * How far a viewer is in the order of receipt: it has seen all entries up to this one, those with the same time and a lower id included. As a
 * text, it is the id of an event.
 */
export interface Position {
  /** ms since 1970. */
  readonly receivedMs: number
  readonly id: string
}

/** Higher than the id of any entry. */
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** After everything that was received at this time. */
export const endOf = (receivedMs: number): Position => ({ receivedMs, id: LAST_ID })

export const positionText = ({ receivedMs, id }: Position): string =>
  id === LAST_ID ? `${receivedMs}` : `${receivedMs}.${id}`

export function parsePosition(text: string): Position | undefined {
  const [, ms, id = LAST_ID] = /^(\d{1,15})(?:\.(.{36}))?$/.exec(text) ?? []
  return ms === undefined || !isId(id) ? undefined : { receivedMs: Number(ms), id }
}

export function isAfter(a: Position, b: Position): boolean {
  return a.receivedMs === b.receivedMs ? a.id > b.id : a.receivedMs > b.receivedMs
}
