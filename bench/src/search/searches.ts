import { logsTable } from '@sluice/clickhouse'

/** A way to store the table. */
interface Option {
  /** What is altered before rows are inserted. */
  readonly alter?: readonly string[]
  /** Of the inserts. */
  readonly settings?: Readonly<Record<string, string>>
  /** What is altered after the merges. */
  readonly after?: readonly string[]
  /** What is altered for the next option. By default, the indexes are dropped. */
  readonly undo?: string
}

const WORDS = "ADD INDEX words lower(message) TYPE text(tokenizer = 'splitByNonAlpha')"
const notByInserts = { exclude_materialize_skip_indexes_on_insert: 'words' }

export const options: Readonly<Record<string, Option>> = {
  default: {},
  lz4: { alter: ['MODIFY COLUMN message CODEC(LZ4)'], undo: 'MODIFY COLUMN message CODEC(ZSTD(1))' },
  bloom: { alter: ['ADD INDEX words lower(message) TYPE tokenbf_v1(32768, 3, 0)'] },
  text: { alter: [WORDS] },
  'text-by-merges': { alter: [WORDS], settings: notByInserts },
  metadata: { alter: ["ADD INDEX values metadata_text TYPE text(tokenizer = 'splitByNonAlpha')"] },
  'text-by-hand': {
    alter: [WORDS, "MODIFY SETTING exclude_materialize_skip_indexes_on_merge = 'words'"],
    settings: notByInserts,
    after: ['MATERIALIZE INDEX words SETTINGS mutations_sync = 2'],
  },
}

const PROJECT = "project_id = 'shop'"
const until = "timestamp < toDateTime64(today(), 6, 'UTC')"
const DAY = `${PROJECT} AND timestamp >= toDateTime64(today() - 1, 6, 'UTC') AND ${until}`
const HOUR = `${PROJECT} AND timestamp >= toDateTime64(today(), 6, 'UTC') - INTERVAL 1 HOUR AND ${until}`
const COLUMNS =
  'id, timestamp, received_at, level, service, environment, source, message, url, pathname, stack, metadata_text'
/** Of one row of the last day. */
const REQUEST_ID = 'hex(cityHash64(toUInt64(777), 0))'

const page = (where: string): string =>
  `SELECT ${COLUMNS} FROM ${logsTable} PREWHERE ${where} ORDER BY timestamp DESC, toUInt128(id) DESC LIMIT 100`
const top = (value: string): string =>
  `SELECT ${value} AS value, count() AS n FROM ${logsTable} PREWHERE ${DAY} GROUP BY value ORDER BY n DESC LIMIT 20`

/** An index of metadata serves only a whole word. */
const inMetadata = (option: string): string =>
  option === 'metadata'
    ? `hasToken(metadata_text, ${REQUEST_ID})`
    : `multiSearchAny(metadata_text, ['\\\\u', ${REQUEST_ID}])`
const contains = (text: string): string => `lower(message) LIKE '%${text}%'`

/** What a reader asks for: statements like those of `apps/query` by what they find. Only a Bloom filter needs another one, for whole words. */
export function searches(option: string): Readonly<Record<string, string>> {
  const word = option === 'bloom' ? "hasToken(lower(message), 'zanzibarquux')" : contains('zanzibarquux')
  return {
    'newest 100 of an hour': page(HOUR),
    'newest 100 of a day, two fields': page(`${DAY} AND level = 'error' AND service = 'service-7'`),
    'counts of a day by level': `SELECT toStartOfInterval(timestamp, INTERVAL 24 MINUTE) AS start, level, count() FROM ${logsTable} PREWHERE ${DAY} GROUP BY start, level`,
    'rare word, a day': page(`${DAY} AND ${word}`),
    'rare word, all days': page(`${PROJECT} AND ${word}`),
    'part of a word, a day': page(`${DAY} AND ${contains('nzibarqu')}`),
    'value of metadata, a day': page(
      `${DAY} AND ${inMetadata(option)} AND JSONExtractString(metadata_text, 'requestId') = ${REQUEST_ID}`,
    ),
    'values of a column, a day': top('service'),
    'values of metadata, a day': top("JSONExtractString(metadata_text, 'host')"),
  }
}
