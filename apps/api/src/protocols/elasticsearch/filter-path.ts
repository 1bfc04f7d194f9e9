/** The parts of an answer that a client asks for with the parameter `filter_path`. */
export interface Filter {
  readonly took: boolean
  readonly errors: boolean
  /** Whether the items have this field. */
  readonly field: (name: ItemField) => boolean
}

type ItemField = '_index' | '_id' | 'status' | 'result' | 'error'

const everything: Filter = { took: true, errors: true, field: () => true }

/** The longest lists that clients send have about 100 characters. */
const FILTER_CHARACTERS_MAX = 1_024

/**
 * Reads a list such as `errors,items.*.error`. Lists with exclusions or with other wildcards are not supported: the answer has everything
 * then, which is valid for all clients.
 */
export function readFilter(text: unknown): Filter {
  if (typeof text !== 'string' || text === '' || text.length > FILTER_CHARACTERS_MAX) return everything
  const paths = text.split(',').map((path) => path.trim().split('.'))
  if (paths.some((path) => !isSupported(path))) return everything
  const has = (name: string): boolean => paths.some(([first]) => first === name)
  const fields = new Set(paths.filter(([first]) => first === 'items').map(([, , field = '*']) => field))
  return {
    took: has('took'),
    errors: has('errors'),
    field: (name) => fields.has(name) || fields.has('*') || fields.has('**'),
  }
}

/** `took`, `items`, `items.*`, `items.*.status` or `items.*.error.type`. */
function isSupported([first = '', action = '*', field = '*']: readonly string[]): boolean {
  if (!/^[a-z]+$/.test(first)) return false
  return first !== 'items' || ((action === '*' || action === '**') && /^(\*\*?|[a-z_]+)$/.test(field))
}
