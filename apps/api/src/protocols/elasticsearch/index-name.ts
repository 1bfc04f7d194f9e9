/** The longest name of an index. */
const NAME_BYTES_MAX = 255

/**
 * What Elasticsearch does not like about the name of an index, in its words. Names with a date (`<logs-{now/d}>`) are not calculated, so they
 * are not allowed. Neither are control characters: as JSON, each would take six bytes in each item of the answer.
 */
export function faultOfIndexName(name: string): string | undefined {
  if (name === '') return 'must not be empty'
  const bytes = Buffer.byteLength(name)
  if (bytes > NAME_BYTES_MAX) return `index name is too long, (${bytes} > ${NAME_BYTES_MAX})`
  if (/[\\/*?"<>| ,]/.test(name))
    return String.raw`must not contain the following characters ['\','/','*','?','"','<','>','|',' ',',']`
  if (/\p{Cc}/u.test(name)) return 'must not contain control characters'
  if (name.includes('#')) return "must not contain '#'"
  if (name.includes(':')) return "must not contain ':'"
  if (/^[_+-]/.test(name)) return "must not start with '_', '-', or '+'"
  if (name === '.' || name === '..') return "must not be '.' or '..'"
  return name === name.toLowerCase() ? undefined : 'must be lowercase'
}
