import { readFileSync } from 'node:fs'
import { zstdDecompressSync } from 'node:zlib'

/** How the bodies of an API are sent. The key is in `authorization` as Bearer, and in `dd-api-key` for Datadog's API. */
const apis = {
  json: ['/v1/logs', 'application/json'],
  ndjson: ['/v1/logs', 'application/x-ndjson'],
  protobuf: ['/v1/logs', 'application/x-protobuf'],
  bulk: ['/elasticsearch/_bulk', 'application/vnd.elasticsearch+x-ndjson; compatible-with=9'],
  loki: ['/loki/api/v1/push', 'application/json'],
  lokiProtobuf: ['/loki/api/v1/push', 'application/x-protobuf'],
  splunk: ['/services/collector/event', 'application/x-www-form-urlencoded'],
  datadog: ['/api/v2/logs', 'application/json'],
} as const

/** 100 entries, as one program encodes them for one API. */
export interface RecordedBody {
  /** The file in `test/bodies`. */
  readonly name: string
  /** What wrote the body. */
  readonly encoder: string
  readonly api: keyof typeof apis
  readonly url: string
  readonly contentType: string
  /** What is stored other than in `recordedEntries`: lines of JSON are messages, and nothing names the level or the service. */
  readonly stored: { readonly lines?: true; readonly level?: 'log'; readonly service?: '' }
}

const rows: readonly (readonly [
  name: string,
  api: keyof typeof apis,
  encoder: string,
  stored?: RecordedBody['stored'],
])[] = [
  ['python', 'json', 'Python json.dumps (requests), spaces'],
  ['python-utf8', 'json', 'Python ensure_ascii=False (httpx), UTF-8 text'],
  ['python-utf8-escaped', 'json', 'Python json.dumps (requests), \\u escapes'],
  ['python-floats', 'json', 'Python, floats and exponents in metadata'],
  ['python-offset', 'json', 'Python, timestamps with an offset'],
  ['winston', 'ndjson', 'winston, NDJSON'],
  ['pino', 'ndjson', 'pino, NDJSON'],
  ['zap', 'ndjson', 'zap, NDJSON'],
  ['otlp-js', 'protobuf', 'OTLP, JavaScript SDK'],
  ['otlp-python', 'protobuf', 'OTLP, Python SDK'],
  ['otlp-java', 'protobuf', 'OTLP, Java SDK'],
  ['otlp-go', 'protobuf', 'OTLP, Go SDK'],
  ['otlp-go-pdata', 'protobuf', 'OTLP, Collector (pdata)'],
  ['otlp-json-js', 'json', 'OTLP JSON, JavaScript SDK'],
  ['otlp-json-go-pdata', 'json', 'OTLP JSON, Collector (pdata)'],
  ['bulk-js', 'bulk', '_bulk, JavaScript client'],
  ['bulk-js-ecs', 'bulk', '_bulk, JavaScript client, ECS'],
  ['bulk-python', 'bulk', '_bulk, Python client'],
  ['bulk-pino', 'bulk', '_bulk, lines of pino'],
  ['bulk-bunyan', 'bulk', '_bulk, lines of bunyan'],
  ['bulk-zap', 'bulk', '_bulk, lines of zap'],
  ['bulk-logrus', 'bulk', '_bulk, lines of logrus'],
  ['bulk-structlog', 'bulk', '_bulk, lines of structlog'],
  ['bulk-loguru', 'bulk', '_bulk, lines of loguru'],
  ['bulk-logback', 'bulk', '_bulk, lines of Logback'],
  ['bulk-filebeat', 'bulk', '_bulk, Filebeat (documented)'],
  ['bulk-fluent-bit', 'bulk', '_bulk, Fluent Bit (documented)'],
  ['bulk-vector', 'bulk', '_bulk, Vector (documented)'],
  ['loki-winston-json', 'loki', 'Loki JSON, winston-loki', { lines: true }],
  ['loki-pino', 'loki', 'Loki JSON, pino-loki', { lines: true }],
  ['loki-fluent-bit', 'loki', 'Loki JSON, Fluent Bit (documented)', { lines: true }],
  ['loki-winston-protobuf', 'lokiProtobuf', 'Loki protobuf, winston-loki', { lines: true }],
  ['loki-go', 'lokiProtobuf', "Loki protobuf, Promtail's encoder"],
  ['hec-js', 'splunk', 'HEC, splunk-logging'],
  ['hec-python', 'splunk', 'HEC, splunk-handler', { lines: true, level: 'log', service: '' }],
  ['hec-docker', 'splunk', "HEC, Docker's driver (documented)"],
  ['hec-fluent-bit', 'splunk', 'HEC, Fluent Bit (documented)'],
  ['hec-vector', 'splunk', 'HEC, Vector (documented)'],
  ['datadog-js', 'datadog', 'Datadog, JavaScript client'],
  ['datadog-python', 'datadog', 'Datadog, Python client'],
]

export const recordedBodies: readonly RecordedBody[] = rows.map(([name, api, encoder, stored = {}]) => {
  const [url, contentType] = apis[api]
  return { name, encoder, api, url, contentType, stored }
})

const read = (name: string, dictionary?: Buffer): Buffer =>
  zstdDecompressSync(
    readFileSync(new URL(`../../bodies/${name}.zst`, import.meta.url)),
    dictionary === undefined ? {} : { dictionary },
  )

const entries = read('entries')

export function readBody(name: string): Buffer {
  return read(name, entries)
}

interface RecordedEntry {
  readonly timestamp: string
  readonly level: string
  readonly service: string
  readonly environment: string
  readonly message: string
  readonly stack?: string
  readonly metadata: Readonly<Record<string, unknown>>
}

/** The entries that all encoders got, except those with text that is not ASCII: theirs are in the body `python-utf8`. */
export const recordedEntries = JSON.parse(entries.toString()) as readonly RecordedEntry[]
