/** What the page shows. All of it is in the URL, so that a link and the browser's Back button restore it. */
export interface View {
  /** In the path of the URL. */
  readonly page: 'entries' | 'pipeline'
  readonly query: string
  /** ISO 8601, or relative to now, as in the API. */
  readonly from: string
  readonly until: string
  /** The fields that have a column, between level and message. */
  readonly columns: readonly string[]
  /** The fields whose values are counted. */
  readonly facets: readonly string[]
  /** The name of a time zone; empty: the browser's. */
  readonly zone: string
  /** The id of the entry whose details are open. */
  readonly selected: string
  /** The id of the entry whose neighbours are listed, instead of the answer to the query. */
  readonly context: string
  readonly sameService: boolean
  readonly live: boolean
  readonly refreshSeconds: number
  /** The dead letters whose list is open. */
  readonly group: string
}

export const defaultView: View = {
  page: 'entries',
  query: '',
  from: '-15m',
  until: 'now',
  columns: ['service'],
  facets: ['level', 'service', 'environment'],
  zone: '',
  selected: '',
  context: '',
  sameService: false,
  live: false,
  refreshSeconds: 0,
  group: '',
}

/** The names of the members in the URL, where they differ. */
const shortNames: Partial<Record<keyof View, string>> = {
  columns: 'column',
  facets: 'facet',
  query: 'q',
  zone: 'tz',
  selected: 'id',
  sameService: 'same',
  refreshSeconds: 'refresh',
}
const members = (Object.keys(defaultView) as (keyof View)[]).filter((member) => member !== 'page')
const PIPELINE_PATH = '/pipeline'

const textsOf = (value: View[keyof View]): readonly string[] => {
  if (!Array.isArray(value)) return [String(value)]
  return value.length === 0 ? [''] : (value as string[])
}

/** The URL without the origin: the page, and what differs from the default and concerns it. */
export function writeView(all: View): string {
  const { page, zone, group } = all
  const isPipeline = page === 'pipeline'
  const view = isPipeline ? { ...defaultView, zone, group } : { ...all, group: '' }
  const parameters = new URLSearchParams()
  for (const member of members) {
    const texts = textsOf(view[member])
    if (JSON.stringify(texts) === JSON.stringify(textsOf(defaultView[member]))) continue
    for (const text of texts) parameters.append(shortNames[member] ?? member, text)
  }
  const search = parameters.toString()
  return `${isPipeline ? PIPELINE_PATH : '/'}${search === '' ? '' : `?${search}`}`
}

/** Anything that is not understood is the default: a URL is typed by people. */
export function readView(search: string, path = '/'): View {
  const parameters = new URLSearchParams(search)
  const view: Record<string, unknown> = { ...defaultView }
  if (path === PIPELINE_PATH) view['page'] = 'pipeline'
  for (const member of members) {
    const texts = parameters.getAll(shortNames[member] ?? member)
    const [text] = texts
    if (text === undefined) continue
    const initial = defaultView[member]
    if (Array.isArray(initial)) view[member] = texts.filter((name) => name !== '')
    else if (typeof initial === 'boolean') view[member] = text === 'true'
    else if (typeof initial === 'number') view[member] = Math.max(0, Math.trunc(Number(text))) || 0
    else view[member] = text
  }
  return view as unknown as View
}
