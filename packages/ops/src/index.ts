export * from './dependencies.ts'
export {
  Heartbeat,
  heartbeatLimits,
  type ProcessReport,
  type ProcessWork,
  readProcesses,
  type RecentLag,
} from './heartbeat.ts'
export { LabelledCounts, Metrics, type Sample } from './metrics.ts'
export * from './ops-server.ts'
export {
  QueueGauge,
  type QueueReading,
  type RedisInfoServer,
  type ServerMemory,
  type ShardReading,
} from './queue-gauge.ts'
export { MemoryTrend } from './queue-reporter.ts'
export { exportProcess, Reporting } from './reporting.ts'
