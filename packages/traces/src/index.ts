export { traceSettings } from './settings.ts'
export { formatTraceparent, parseTraceparent, type SpanContext, TRACEPARENT_LENGTH } from './traceparent.ts'
export {
  type Attributes,
  type Span,
  type SpanOptions,
  spanLimits,
  startTraces,
  type Traces,
  type TracesOptions,
} from './traces.ts'
