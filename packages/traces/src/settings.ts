/**
 * Settings of every process that makes spans. They have the names of the OpenTelemetry specification, since the exporter also reads other
 * variables of it. The general `OTEL_EXPORTER_OTLP_ENDPOINT` has no effect: platforms set it for all processes, and traces are off
 * unless someone wants those of Sluice.
 */
export const traceSettings = {
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {
    type: 'string',
    pattern: '^https?://[^/\\s]',
    description:
      'The URL to which traces are sent with OTLP over HTTP, such as `http://collector:4318/v1/traces`. Without it, there are no traces. See docs/traces.md.',
  },
} as const
