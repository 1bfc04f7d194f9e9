import { datadogLogs } from '../protocols/datadog.ts'
import { elasticsearchBulk } from '../protocols/elasticsearch/bulk.ts'
import { lokiPush } from '../protocols/loki/push.ts'
import type { Protocol } from '../protocols/protocol.ts'
import { splunkHec } from '../protocols/splunk-hec.ts'

/** The protocols that have paths of their own. */
export const protocols: readonly Protocol[] = [elasticsearchBulk, lokiPush, ...splunkHec, datadogLogs]
