// Only modules without dependencies. The others are imported by their path, such as `@sluice/harness/load`: a unit test must
// not load the clients of Redis and ClickHouse.
export { type Direction, FaultProxy } from './fault-proxy.ts'
export { HttpConnection } from './http-connection.ts'
export type { HttpResponse } from './http-response.ts'
export { chunkText, entryText, type LogsResponse, postHead, postLogs, postText } from './logs-request.ts'
export {
  happens,
  integer,
  logInteger,
  pick,
  pickWeighted,
  type Random,
  seededRandom,
  shuffle,
} from './random.ts'
export { runsOf } from './runs.ts'
export { eventually, pause, within } from './waiting.ts'
