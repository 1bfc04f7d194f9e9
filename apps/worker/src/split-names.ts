/** The name under which the split of the whole batch is persisted. */
export const WHOLE_BATCH = 'all'
/** The name under which it is persisted that halves of the batch may be sent. From then on, no more rows are set apart. */
export const HALVED = 'halved'

/** The names that are persisted of lists of rows: rows that are sent alone, and rows that ClickHouse has rejected. */
export type RowList = 'alone' | 'rejected'

/** The name under which it is persisted that a range is split. */
export function rangeName(from: number, to: number): string {
  return `${from}-${to}`
}

/** The name of a list of rows. A single rejected row has the name of its range. */
export function listName(list: RowList, rows: readonly { readonly index: number }[]): string {
  const indexes = rows.map(({ index }) => index)
  const [first, ...others] = indexes
  if (list === 'rejected' && first !== undefined && others.length === 0) return rangeName(first, first + 1)
  return `${list}:${indexes.join(',')}`
}

/** The rows that a list has by its name; undefined if the name does not belong to such a list. */
export function listOf(list: RowList, name: string): number[] | undefined {
  const [prefix, indexes] = name.split(':')
  if (indexes !== undefined) return prefix === list ? indexes.split(',').map(Number) : undefined
  const [from, to] = name.split('-').map(Number)
  return list === 'rejected' && from !== undefined && to === from + 1 ? [from] : undefined
}
