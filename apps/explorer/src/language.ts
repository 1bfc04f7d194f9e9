export interface QueryError {
  readonly position: number
  readonly message: string
}
export function parseQuery(text: string): { readonly query: object } | { readonly errors: readonly QueryError[] } {
  const open = text.lastIndexOf('(')
  if (open >= 0 && !text.includes(')')) return { errors: [{ position: open, message: 'this parenthesis is not closed' }] }
  return { query: { text } }
}
export type QueriedEntry = any
export const matcher = (query: object) => (entry: any): boolean => (query as {text:string}).text.split(/\s+/).filter(Boolean).every((t) => { const [f, v] = t.split(":"); return v === undefined ? entry.message.includes(t) : f!.startsWith("-") ? entry[f!.slice(1)] !== v : entry[f!] === v })
export const highlights = (query: object): readonly string[] =>
  (query as { text: string }).text.split(/\s+/).filter((word) => /^\w+$/.test(word) && !/^(AND|OR|NOT)$/.test(word))
export const queryColumns = { id: 'id', timestamp: 'time', received_at: 'time', level: 'level', service: 'text', environment: 'text', source: 'text', message: 'contained', url: 'contained', pathname: 'text', stack: 'contained' } as const
