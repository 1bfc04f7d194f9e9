import type { Attributes, Span, SpanContext, SpanOptions, Traces } from '@sluice/traces'

export class RecordedSpan implements Span {
  readonly options: SpanOptions
  readonly context: SpanContext
  readonly links: SpanContext[]
  attributes: Attributes
  ended: 'ok' | 'error' | undefined

  constructor(options: SpanOptions, context: SpanContext) {
    this.options = options
    this.context = context
    this.links = [...(options.links ?? [])]
    this.attributes = options.attributes
  }

  set(attributes: Attributes): void {
    this.attributes = { ...this.attributes, ...attributes }
  }

  link(to: SpanContext): void {
    this.links.push(to)
  }

  end(result?: 'error'): void {
    this.ended ??= result ?? 'ok'
  }
}

export class RecordedTraces implements Traces {
  readonly spans: RecordedSpan[] = []

  start(options: SpanOptions): RecordedSpan {
    const number = this.spans.length + 1
    const traceId = options.parent?.traceId ?? number.toString(16).padStart(32, 'a')
    const span = new RecordedSpan(options, { traceId, spanId: number.toString(16).padStart(16, 'b') })
    this.spans.push(span)
    return span
  }

  named(name: string): RecordedSpan[] {
    return this.spans.filter(({ options }) => options.name === name)
  }

  async close(): Promise<void> {
    // Nothing is exported.
  }
}
