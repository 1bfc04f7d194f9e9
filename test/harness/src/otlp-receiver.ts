import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { HttpServer } from './http-server.ts'

type Value = string | number | boolean

export interface ReceivedSpan {
  readonly service: string
  readonly name: string
  /** As OTLP numbers them: 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly links: readonly string[]
  readonly attributes: Readonly<Record<string, Value>>
  readonly isError: boolean
  readonly startMs: number
  readonly durationMs: number
}

interface OtlpAttribute {
  readonly key: string
  readonly value: Readonly<Partial<Record<`${'string' | 'bool' | 'int' | 'double'}Value`, Value>>>
}

interface OtlpSpan extends Pick<ReceivedSpan, 'name' | 'kind' | 'traceId' | 'spanId'> {
  readonly parentSpanId?: string
  readonly links?: readonly { readonly spanId: string }[]
  readonly attributes: readonly OtlpAttribute[]
  readonly status: { readonly code?: number }
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
}

interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

const STATUS_ERROR = 2
const NS_PER_MS = 1_000_000

/** An OpenTelemetry Collector as far as processes know it: it receives spans with OTLP over HTTP, as JSON. */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = []
  /** How it responds: it accepts spans, rejects them, or never responds. */
  mode: 'accepting' | 'rejecting' | 'silent' = 'accepting'
  requests = 0
  readonly #server = new HttpServer((request, response) => void this.#receive(request, response))
  readonly #held: ServerResponse[] = []

  static async open(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver()
    await receiver.#server.listen()
    return receiver
  }

  /** For `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`. */
  get url(): string {
    return `${this.#server.url}/v1/traces`
  }

  named(name: string): ReceivedSpan[] {
    return this.spans.filter((span) => span.name === name)
  }

  /** Rejects what has no response yet: a sender would retry after a connection that is closed. */
  async close(): Promise<void> {
    await Promise.all(this.#held.map((response) => this.#answer(response, 401)))
    await this.#server.close()
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request).catch(() => undefined)
    this.requests += 1
    if (body === undefined) return
    if (this.mode === 'silent') return void this.#held.push(response)
    if (this.mode === 'accepting') this.spans.push(...readSpans(JSON.parse(body) as OtlpRequest))
    await this.#answer(response, this.mode === 'accepting' ? 200 : 401)
  }

  #answer(response: ServerResponse, status: number): Promise<void> {
    response.statusCode = status
    response.setHeader('content-type', 'application/json')
    return new Promise((resolve) => {
      if (response.destroyed) resolve()
      else response.once('close', resolve).end('{}')
    })
  }
}

function readSpans({ resourceSpans }: OtlpRequest): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(readAttributes(resource.attributes)['service.name'])
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => readSpan(span, service)))
  })
}

function readSpan(span: OtlpSpan, service: string): ReceivedSpan {
  const { name, kind, traceId, spanId, parentSpanId, links = [] } = span
  const [startNs, endNs] = [BigInt(span.startTimeUnixNano), BigInt(span.endTimeUnixNano)]
  return {
    service,
    name,
    kind,
    traceId,
    spanId,
    parentSpanId,
    links: links.map((link) => link.spanId),
    attributes: readAttributes(span.attributes),
    isError: span.status.code === STATUS_ERROR,
    startMs: Number(startNs) / NS_PER_MS,
    durationMs: Number(endNs - startNs) / NS_PER_MS,
  }
}

function readAttributes(attributes: readonly OtlpAttribute[]): Record<string, Value> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, boolValue, intValue, doubleValue } }) => [
      key,
      stringValue ?? boolValue ?? doubleValue ?? Number(intValue),
    ]),
  )
}
