import { TRACED_PER_S_MAX } from './request-traces.ts'

/** Which requests are traced. Workers trace the batches of traced chunks. */
export const sampleSettings = {
  OTEL_TRACES_SAMPLER_ARG: {
    type: 'string',
    pattern: '^(0(\\.[0-9]{1,9})?|1(\\.0{1,9})?)$',
    default: '1',
    description: `The part of the requests without a valid \`traceparent\` that is traced, from 0 to 1. A process traces at most ${TRACED_PER_S_MAX} requests per second.`,
  },
} as const
