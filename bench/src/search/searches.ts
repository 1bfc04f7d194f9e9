import { DAY_MS, rare } from './table.ts'

/** A way to store the table. */
export interface Option {
  /** What is altered before rows are inserted. */
  readonly alter?: readonly string[]
  /** Of the inserts. */
  readonly settings?: Readonly<Record<string, string>>
  /** What is altered after the merges. */
  readonly after?: readonly string[]
}

const WORDS = "ADD INDEX words lower(message) TYPE text(tokenizer = 'splitByNonAlpha')"
const notByInserts = { exclude_materialize_skip_indexes_on_insert: 'words' }

/** Each begins with the table of the migrations. */
export const options: Readonly<Record<string, Option>> = {
  default: {},
  zstd: { alter: ['MODIFY COLUMN message CODEC(ZSTD(1))'] },
  text: { alter: [WORDS] },
  'text-by-merges': { alter: [WORDS], settings: notByInserts },
  'text-by-hand': {
    alter: [WORDS, "MODIFY SETTING exclude_materialize_skip_indexes_on_merge = 'words'"],
    settings: notByInserts,
    after: ['MATERIALIZE INDEX words SETTINGS mutations_sync = 2'],
  },
}

interface Search {
  /** Of the query API. */
  readonly operation: string
  readonly parameters: Readonly<Record<string, string>>
}

const HOUR_MS = 3_600_000

/** What a reader asks for. The id, and that of the request, are of one row of the last day. */
export function searches(
  fromMs: number,
  endMs: number,
  { requestId, id }: { requestId: string; id: string },
): Readonly<Record<string, Search>> {
  const since = (startMs: number): { from: string; until: string } => ({
    from: new Date(startMs).toISOString(),
    until: new Date(endMs).toISOString(),
  })
  const day = since(endMs - DAY_MS)
  const page = (query: string, of = day): Search => ({ operation: 'logs', parameters: { ...of, query } })
  const count = (query: string): Search => ({
    operation: 'histogram',
    parameters: { ...day, query, buckets: '1' },
  })
  const valuesOf = (field: string, query = ''): Search => ({
    operation: 'values',
    parameters: { ...day, field, query },
  })
  const number = `durationMs:>=${rare.durationMs}`
  return {
    'first page of an hour': page('', since(endMs - HOUR_MS)),
    'first page of a day': page(''),
    '… with two fields': page('level:error service:openssh'),
    '… of a service that does not exist': page('service:none'),
    'histogram of a day': { operation: 'histogram', parameters: day },
    'rare word, a day': page(rare.word),
    'rare word, all days': page(rare.word, since(fromMs)),
    'rare word, count, a day': count(rare.word),
    'part of a rare word, a day': page(rare.partOfWord),
    'value of metadata, a day': page(`requestId:${requestId}`),
    'rare number in metadata, a day': page(number),
    'http.status:>=500, first page of a day': page('http.status:>=500'),
    'http.status:>=500, count, a day': count('http.status:>=500'),
    'fields of a day': { operation: 'fields', parameters: day },
    'fields of a day with a rare word': { operation: 'fields', parameters: { ...day, query: rare.word } },
    'values of a column, a day': valuesOf('service'),
    'values of metadata, a day': valuesOf('host'),
    'values of metadata with http.status:>=500, a day': valuesOf('host', 'http.status:>=500'),
    'context of an entry': { operation: 'context', parameters: { id } },
  }
}
