import { datadogLogs } from './datadog/logs.ts'
import { elasticsearchBulk } from './elasticsearch/bulk.ts'
import { lokiPush } from './loki/push.ts'
import type { Protocol } from './protocol.ts'
import { splunkHec } from './splunk-hec/hec.ts'

/** The protocols that have paths of their own. */
export const protocols: readonly Protocol[] = [elasticsearchBulk, lokiPush, ...splunkHec, datadogLogs]
