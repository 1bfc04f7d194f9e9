import {
  clickhouseAccessFrom,
  type ClickHouseError,
  ClickHouseClock,
  connectClickHouse,
  deadLetterWriter,
  DeadLetterStore,
  describeError,
  FrameInserter,
  installations,
  QueryWatch,
  rowChecker,
  RowInserter,
  storedRowFinder,
  watchLimits,
} from '@sluice/clickhouse'
import { isCopy, Reporting, RetryRequests, runCopies } from '@sluice/ops'
import {
  batchLedger,
  chunkConsumer,
  FetchMonitor,
  lateInserts,
  queueNames,
  type QueueNames,
  ShardCount,
} from '@sluice/queue'
import { Registry, RegistryCheck } from '@sluice/projects'
import {
  createLogger,
  processClock as clock,
  openRedis,
  readSettingsOrExit,
  runProcess,
  Semaphore,
  TimeoutError,
  withTimeout,
} from '@sluice/runtime'
import { startTraces } from '@sluice/traces'
import { randomUUID } from 'node:crypto'
import packageJson from '../package.json' with { type: 'json' }
import { traceBatches } from './batch-spans.ts'
import { heldBudget } from './collector.ts'
import { readWorkerConfig } from './config.ts'
import { DeadLetterRetries } from './dead-letter-retries.ts'
import { InsertHealth } from './insert-health.ts'
import { workerLimits } from './limits.ts'
import { RejectedProjects } from './rejected-projects.ts'
import { RequeueError, Retrier } from './retrier.ts'
import { fetchLimits } from './shard.ts'
import { ServedShards, type ShardDependencies, type ShardQueue, startShard } from './shards.ts'
import { observeQueries, WorkerEvents } from './worker-events.ts'
import { exportWorker } from './worker-metrics.ts'

const config = readSettingsOrExit('worker', () => readWorkerConfig(process.env))
const logger = createLogger('worker', config.LOG_LEVEL, config.LOG_FORMAT)
const monotonicMs = (): number => clock.nowMs()
const { SLUICE_PREFIX: prefix, SHUTDOWN_DEADLINE_MS: deadlineMs, LOCK_DURATION_MS: lockDurationMs } = config

if (config.WORKER_PROCESSES > 1 && !isCopy())
  await runCopies({ logger, config, count: config.WORKER_PROCESSES })

await runProcess({
  logger,
  deadlineMs,
  start: async (resources) => {
    const workerId = randomUUID()
    const events = new WorkerEvents()

    const traces = await startTraces(config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, {
      app: 'worker',
      version: packageJson.version,
      instanceId: workerId,
      logger,
    })
    if (traces !== undefined) {
      traceBatches(traces, events)
      // Last, and never in the second half of the time: a silent endpoint must not make a shutdown fail.
      resources.defer(() => traces.close(resources.halfTimeMs))
    }

    const {
      redis,
      connect,
      durable,
      clock: redisClock,
      durability,
      registryPrefix,
    } = openRedis({
      resources,
      config,
      tuning: { failFast: false },
      replicationWaitMs: workerLimits.replicationWaitMs,
      monotonicMs,
      logger,
    })
    const wallMs = redisClock.nowMs
    const fetchMonitor = new FetchMonitor(monotonicMs)

    const access = clickhouseAccessFrom(config)
    const connectionsMax = 2 * (workerLimits.insertsInFlightMax + workerLimits.repairsInFlightMax)
    const clickhouse = resources.closeAtEnd(
      connectClickHouse(access, { requestTimeoutMs: workerLimits.insertTimeoutMs, connectionsMax }),
    )
    const questions = resources.closeAtEnd(
      connectClickHouse(access, {
        requestTimeoutMs: watchLimits.questionTimeoutMs,
        // Each query in flight has one question at a time.
        connectionsMax,
        reusesConnections: false,
      }),
    )
    const watch = new QueryWatch({ client: questions, isCluster: access.cluster !== undefined, monotonicMs })
    const clickhouseClock = resources.stopAtEnd(
      new ClickHouseClock({ client: clickhouse, redisMs: redisClock.knownMs, monotonicMs, watch }),
    )

    const { identity } = new Registry(redis, registryPrefix)
    const ids = installations(clickhouse, watch, prefix)
    const registryCheck = resources.stopAtEnd(new RegistryCheck({ redis, identity, ids, logger }))

    const health = new InsertHealth(clock, events)
    const stopping = new AbortController()
    const { signal } = stopping
    const retrier = new Retrier({ logger, signal, clock, random: Math.random, events })
    const queries = observeQueries(events, clock, {
      beforeAttempt: () => clickhouseClock.check(),
      frameInserter: new FrameInserter(clickhouse, watch),
      storedRows: storedRowFinder(clickhouse, wallMs, watch),
    })
    const insertOnce = {
      areTokensAtomic: config.CLICKHOUSE_CLUSTER !== undefined,
      sleep: (ms: number) => clock.sleep(ms),
      beforeAttempt: queries.beforeAttempt,
      onStoredDespiteError: (error: ClickHouseError) => events.emit('stored despite error', error),
    }
    events.on('stored despite error', (error) =>
      logger.error(
        { reason: describeError(error) },
        'rows are stored, and a materialized view has failed: its table lacks them',
      ),
    )

    const heldChunks = (): number => shards.heldChunks
    const openQueue = (names: QueueNames): ShardQueue => ({
      ledger: batchLedger(durable, names),
      consumer: chunkConsumer({ redis, durable, names, workerId, lockDurationMs, logger, fetchMonitor }),
    })
    const dependencies: ShardDependencies = {
      config,
      rowInserter: new RowInserter({ ...insertOnce, ...queries }),
      rowCheck: rowChecker(clickhouse, watch),
      deadLetters: deadLetterWriter({ ...insertOnce, client: clickhouse, watch, wallMs }),
      health,
      insertNothing: queries.insertNothing,
      insertSlots: new Semaphore(workerLimits.insertsInFlightMax, signal),
      repairPermits: new Semaphore(workerLimits.repairsInFlightMax, signal),
      rejectedProjects: new RejectedProjects(clock),
      chunkBudget: heldBudget(workerLimits.chunksMax),
      byteBudget: heldBudget(workerLimits.heldBytesMax),
      heldInAllShards: heldChunks,
      signal,
      retrier,
      events,
      makeId: randomUUID,
      workerId,
      clock,
      fetchLimits,
      logger,
    }
    const shardCount = new ShardCount(redis, prefix, config.QUEUE_SHARDS)
    const shards: ServedShards = new ServedShards({
      shards: shardCount,
      start: (names) => startShard(openQueue(names), names.shard, dependencies),
      clock,
      logger,
    })

    // A shard that does not respond must not delay the report of the others.
    const reportingRedis = connect({ failFast: true, commandTimeoutMs: workerLimits.reportTimeoutMs })
    const reporting: Reporting = resources.stopAtEnd(
      new Reporting({
        role: 'worker',
        version: packageJson.version,
        processId: workerId,
        config,
        redis,
        reportingRedis,
        shards: shardCount,
        registry: registryCheck,
        checks: [fetchMonitor, watch, durability, redisClock, clickhouseClock],
        reasons: () => [...(health.failure === undefined ? [] : [health.failure]), ...retrier.failures],
        dependencies: () => ({
          clickhouse: health.lastError ?? watch.readiness.reasons[0],
          ...Object.fromEntries(
            shards.names.map(({ shard, queuePrefix }) => [
              `shard ${shard}`,
              fetchMonitor.failureOf(queuePrefix),
            ]),
          ),
        }),
        work: () => ({ chunksHeld: heldChunks(), ...recentWork() }),
        wallMs,
        monotonicMs,
        logger,
      }),
    )
    const recentWork = exportWorker(reporting.metrics, events, {
      chunksHeld: heldChunks,
      isInserting: () => health.failure === undefined,
      wallMs,
      monotonicMs,
    })
    // With a connection of its own, so that no insert waits for a retry.
    const retrying = resources.closeAtEnd(
      connectClickHouse(access, { requestTimeoutMs: workerLimits.insertTimeoutMs, connectionsMax: 1 }),
    )
    const retries = resources.stopAtEnd(
      new DeadLetterRetries({
        redis: reportingRedis,
        requests: new RetryRequests(reportingRedis, prefix),
        store: new DeadLetterStore(retrying),
        late: lateInserts(durable, queueNames(prefix)),
        logger,
      }),
    )
    const opsUrl = await reporting.start({
      isAlive: () => fetchMonitor.isAlive && watch.isAlive,
    })

    for (const part of [redisClock, durability, clickhouseClock, registryCheck, retries, shards]) part.start()
    resources.defer(async () => {
      const requeue = setTimeout(
        () => stopping.abort(new RequeueError('stopping')),
        Math.max(0, deadlineMs - workerLimits.requeueMs),
      )
      try {
        await withTimeout(shards.stop(), Math.max(deadlineMs / 2, deadlineMs - workerLimits.closeMs))
      } catch (error) {
        if (!(error instanceof TimeoutError)) throw error
        // Redis or ClickHouse does not respond. Other workers fetch the chunks when their locks have expired.
        logger.warn({ chunks: heldChunks() }, 'chunks left to the stalled check')
      } finally {
        clearTimeout(requeue)
      }
    })
    // A worker that never could insert learns it before its first batch. Without the clocks, since they may not be known yet.
    queries.frameInserter.insert([], 'probe').catch(() => undefined)
    logger.info({ opsUrl }, 'working')
    return opsUrl
  },
})
