/** An SQL string. A query parameter has no room for it: parameters are part of the URL. */
export function quote(value: string): string {
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
