/** As in style.css. */
export const ROW_HEIGHT = 22
const HEAD_HEIGHT = 26
/** Drawn above and below the visible rows, so that a slow frame shows no gap. */
const EXTRA_ROWS = 12

/** A list of rows of one height, of which only those near the visible part are in the document. */
export interface Scroll {
  readonly top: number
  readonly height: number
  readonly count: number
}

/** What is seen of the rows of a box, which has a head that stays. */
export const seenIn = ({ scrollTop, clientHeight }: Pick<Element, 'scrollTop' | 'clientHeight'>) => ({
  top: scrollTop,
  height: clientHeight - HEAD_HEIGHT,
})

/** The rows to draw: the visible ones and some around them. After a jump by more than is visible, those would help nobody, and take time. */
export function drawnRows(
  { top, height, count }: Scroll,
  topBefore: number,
): { readonly first: number; readonly end: number } {
  const extra = Math.abs(top - topBefore) > height ? 0 : EXTRA_ROWS
  const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - extra)
  return {
    first: Math.min(first, count),
    end: Math.min(count, Math.ceil((top + height) / ROW_HEIGHT) + extra),
  }
}

/**
 * The keys of the drawn rows. A row that stays keeps its key, and so its elements. If none stays, the new rows reuse the elements of the old
 * ones: to change their text costs less than to make elements.
 */
export function keysOf(ids: readonly string[], before: ReadonlyMap<string, number>): Map<string, number> {
  const old = [...before.values()]
  const staysAny = ids.some((id) => before.has(id))
  let last = Math.max(-1, ...old)
  return new Map(ids.map((id, at) => [id, (staysAny ? before.get(id) : old[at]) ?? (last += 1)]))
}

/** Where to scroll so that a row is visible: nowhere if it is. */
export function topToShow({ top, height }: Omit<Scroll, 'count'>, row: number): number {
  const rowTop = row * ROW_HEIGHT
  if (rowTop < top) return rowTop
  return rowTop + ROW_HEIGHT > top + height ? rowTop + ROW_HEIGHT - height : top
}

/** Whether so few rows are left below that the next page should be on its way. */
export const nearsEnd = ({ top, height, count }: Scroll): boolean => top + height > (count - 100) * ROW_HEIGHT
