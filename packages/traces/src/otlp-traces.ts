import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api'
import type { SpanContext as OtelContext, Tracer } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { AlwaysOnSampler, BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { withTimeout } from '@sluice/runtime'
import { lookup as dnsLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import {
  type Span,
  type SpanContext,
  spanLimits,
  type SpanOptions,
  type Traces,
  type TracesOptions,
} from './index.ts'

/**
 * Exports at the same time. While the process runs, there is one, and those whose endpoint never ends its response. At its end, all spans
 * that wait are exported at once.
 */
const EXPORTS_MAX = spanLimits.waitingMax / spanLimits.exportSpansMax + 1
const REASON_LENGTH_MAX = 100

export class OtlpTraces implements Traces {
  readonly #provider: TracerProvider
  readonly #tracer: Tracer

  /** @param lookup looks up the host of the endpoint. Default: the name service of the system */
  constructor(
    endpoint: string,
    { app, version, instanceId, logger }: TracesOptions,
    lookup?: LookupFunction,
  ) {
    const exporter = new OTLPTraceExporter({
      url: endpoint,
      timeoutMillis: spanLimits.exportTimeoutMs,
      concurrencyLimit: EXPORTS_MAX,
      httpAgentOptions: { keepAlive: true, lookup: sharedLookup(lookup) },
    })
    // OpenTelemetry itself logs nothing, since it has no logger.
    const send = exporter.export.bind(exporter)
    exporter.export = (spans, onResult) =>
      send(spans, (result) => {
        const { error } = result
        if (error !== undefined)
          logger.warn({ spans: spans.length, reason: reasonOf(error) }, 'traces not exported')
        onResult(result)
      })
    this.#provider = new TracerProvider({
      resource: resourceFromAttributes({
        'service.name': `sluice-${app}`,
        'service.version': version,
        'service.instance.id': instanceId,
      }),
      // Callers sample before they make a span, so that a request that is not sampled costs no span.
      sampler: new AlwaysOnSampler(),
      spanLimits: { linkCountLimit: spanLimits.linksMax },
      spanProcessors: [
        new BatchSpanProcessor({
          exporter,
          maxQueueSize: spanLimits.waitingMax,
          maxExportBatchSize: spanLimits.exportSpansMax,
          scheduledDelayMillis: spanLimits.exportIntervalMs,
          exportTimeoutMillis: spanLimits.exportMaxMs,
        }),
      ],
    })
    this.#tracer = this.#provider.getTracer('sluice', version)
  }

  start({ name, kind, startMs, parent, links = [], attributes }: SpanOptions): Span {
    const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote(parent))
    const options = {
      kind: SpanKind[kind.toUpperCase() as Uppercase<typeof kind>],
      startTime: startMs,
      links: links.slice(0, spanLimits.linksMax).map((link) => ({ context: remote(link) })),
      attributes,
    }
    const span = this.#tracer.startSpan(name, options, context)
    return {
      context: span.spanContext(),
      set: (later) => void span.setAttributes(later),
      link: (to) => void span.addLink({ context: remote(to) }),
      end: (result) => {
        if (result === 'error') span.setStatus({ code: SpanStatusCode.ERROR })
        // On the clock of the start. Without a time, the end would be on the system's clock, in whole milliseconds.
        span.end(performance.now())
      },
    }
  }

  async close(deadlineMs: number): Promise<void> {
    const waitMs = Math.min(spanLimits.closeMaxMs, deadlineMs - performance.now())
    // A failure was logged by the exporter.
    await withTimeout(this.#provider.shutdown(), waitMs).catch(() => undefined)
  }
}

function remote({ traceId, spanId }: SpanContext): OtelContext {
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true }
}

/** The status of HTTP, the code of an error of the network, or a message. Never the response of the endpoint. */
function reasonOf(error: Error): string {
  const { code = error.message.slice(0, REASON_LENGTH_MAX) } = error as { code?: string | number }
  return typeof code === 'number' ? `HTTP ${code}` : code
}

/**
 * Looks the host of the endpoint up like `dns.lookup`, but not while it is being looked up already: callers then share the result.
 *
 * A lookup takes one of the four threads of Node's pool, for half a minute if the name server is silent. An export gives up before that,
 * and the next one looks the host up as well. Without this function they would use all threads, and the API decodes large bodies in them.
 */
export function sharedLookup(base: LookupFunction = dnsLookup): LookupFunction {
  let waiting: Parameters<LookupFunction>[2][] = []
  return (hostname, options, callback) => {
    if (waiting.push(callback) > 1) return
    base(hostname, options, (...answer) => {
      const callbacks = waiting
      waiting = []
      for (const each of callbacks) each(...answer)
    })
  }
}
