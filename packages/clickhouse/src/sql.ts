/** An SQL string. A query parameter has no room for it: parameters are part of the URL. */
export function quote(value: string): string {
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

/** Rows for one query each. @param bytesMax a portion may exceed it by one row */
export function* inPortions<Row>(
  rows: Iterable<Row>,
  rowsMax: number,
  bytesMax = Number.POSITIVE_INFINITY,
  bytesOf: (row: Row) => number = () => 0,
): Generator<Row[]> {
  let portion: Row[] = []
  let bytes = 0
  for (const row of rows) {
    portion.push(row)
    bytes += bytesOf(row)
    if (bytes < bytesMax && portion.length < rowsMax) continue
    yield portion
    portion = []
    bytes = 0
  }
  if (portion.length > 0) yield portion
}
