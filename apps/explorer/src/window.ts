/** A list of rows of one height, of which only those near the visible part are in the document. */
export interface Scroll {
  readonly top: number
  readonly height: number
  readonly rowHeight: number
  readonly count: number
}

/** The rows to draw: the visible ones and some around them, so that a slow frame shows no gap. */
export function drawnRows(
  { top, height, rowHeight, count }: Scroll,
  extra = 12,
): { readonly first: number; readonly end: number } {
  const first = Math.max(0, Math.floor(top / rowHeight) - extra)
  return {
    first: Math.min(first, count),
    end: Math.min(count, Math.ceil((top + height) / rowHeight) + extra),
  }
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
