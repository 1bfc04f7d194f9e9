/** A list of rows of one height, of which only those near the visible part are in the document. */
export interface Scroll {
  readonly top: number
  readonly height: number
  readonly rowHeight: number
  readonly count: number
}

/** The rows to draw: the visible ones and some around them. */
export function drawnRows(
  { top, height, rowHeight, count }: Scroll,
  extra: number,
): { readonly first: number; readonly end: number } {
  const first = Math.max(0, Math.floor(top / rowHeight) - extra)
  return {
    first: Math.min(first, count),
    end: Math.min(count, Math.ceil((top + height) / rowHeight) + extra),
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
export function topToShow({ top, height, rowHeight }: Scroll, row: number): number {
  const rowTop = row * rowHeight
  if (rowTop < top) return rowTop
  return rowTop + rowHeight > top + height ? rowTop + rowHeight - height : top
}

/** Whether so few rows are left below that the next page should be on its way. */
export const nearsEnd = ({ top, height, rowHeight, count }: Scroll): boolean =>
  top + height > (count - 100) * rowHeight
