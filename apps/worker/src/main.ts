import {
  clickhouseAccessFrom,
  type ClickHouseError,
  ClickHouseClock,
  connectClickHouse,
  DeadLetters,
  DeadLetterStore,
  describeError,
  FrameInserter,
  Installations,
  type QueryWatcher,
  QueryWatch,
  RowCheck,
  RowInserter,
  StoredRows,
  watchLimits,
} from '@sluice/clickhouse'
import {
  Dependencies,
  exportProcess,
  isCopy,
  Metrics,
  redisDependency,
  Reporting,
  RetryRequests,
  runCopies,
  startOpsServer,
} from '@sluice/ops'
import {
  BatchLedger,
  ChunkConsumer,
  FetchMonitor,
  lateInserts,
  queueNames,
  type QueueNames,
  ShardCount,
} from '@sluice/queue'
import { Registry, RegistryCheck } from '@sluice/projects'
import { IdSource } from '@sluice/rows'
import {
  connectRedis,
  createLogger,
  DurabilityCheck,
  durableRedis,
  installationNames,
  processClock as clock,
  readSettingsOrExit,
  RedisClock,
  type RedisConnection,
  runProcess,
  Semaphore,
  TimeoutError,
  withTimeout,
} from '@sluice/runtime'
import { startTraces } from '@sluice/traces'
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import packageJson from '../package.json' with { type: 'json' }
import { traceBatches } from './batch-spans.ts'
import { HeldBudget } from './collector.ts'
import { readWorkerConfig } from './config.ts'
import { DeadLetterRetries } from './dead-letter-retries.ts'
import { InsertHealth } from './insert-health.ts'
import { workerLimits } from './limits.ts'
import { Progress } from './progress.ts'
import { RejectedProjects } from './rejected-projects.ts'
import { RequeueError, Retrier } from './retrier.ts'
import { fetchLimits } from './shard.ts'
import { ServedShards, type ShardDependencies, type ShardQueue, startShard } from './shards.ts'
import { observeQueries, WorkerEvents } from './worker-events.ts'
import { exportWorker } from './worker-metrics.ts'

const config = readSettingsOrExit('worker', () => readWorkerConfig(process.env))
const logger = createLogger('worker', config.LOG_LEVEL, config.LOG_FORMAT)
const monotonicMs = (): number => clock.nowMs()
const { SLUICE_PREFIX: prefix, SHUTDOWN_DEADLINE_MS: deadlineMs } = config
const { registryPrefix } = installationNames(prefix)

if (config.WORKER_PROCESSES > 1 && !isCopy())
  await runCopies({ logger, config, count: config.WORKER_PROCESSES })

await runProcess({
  logger,
  deadlineMs,
  start: async () => {
    /** What is made first is closed last. */
    const stack = new AsyncDisposableStack()
    const parts: { start(): void }[] = []
    const startLater = <T extends { start(): void; stop(): unknown }>(its: T): T => {
      parts.push(its)
      return stack.adopt(its, async () => void (await its.stop()))
    }
    const closeAtEnd = <T extends { close(): unknown }>(its: T): T =>
      stack.adopt(its, async () => void (await its.close()))
    let stoppingMs = 0
    const workerId = randomUUID()
    const events = new WorkerEvents()

    const traces = await startTraces({
      endpoint: config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
      app: 'worker',
      version: packageJson.version,
      instanceId: workerId,
      logger,
    })
    if (traces !== undefined) {
      traceBatches(traces, events)
      // Last, and never in the second half of the time: a silent endpoint must not make a shutdown fail.
      stack.defer(() => traces.close(stoppingMs + deadlineMs / 2))
    }

    const { REDIS_TLS_CA_FILE: tlsCaFile, REDIS_SENTINEL_PASSWORD: sentinelPassword } = config
    const redisAccess = { tlsCaFile, sentinelPassword }
    const onError = (error: Error): void => logger.warn({ err: error }, 'redis connection failed')
    const connect = (options: Parameters<typeof connectRedis>[1]): RedisConnection => {
      const connection = connectRedis(config.REDIS_URL, { ...redisAccess, ...options })
      return stack.adopt(connection.on('error', onError), () => connection.disconnect())
    }
    const redis = connect({ failFast: false })
    // A shard that does not respond must not delay the report of the others.
    const reportingRedis = connect({ failFast: true, commandTimeoutMs: workerLimits.reportTimeoutMs })
    const durable = closeAtEnd(
      durableRedis(redis, {
        ...redisAccess,
        url: config.REDIS_URL,
        replicas: config.REDIS_REPLICAS_ACK,
        waitMs: workerLimits.replicationWaitMs,
        onError,
      }),
    )
    const redisClock = startLater(
      new RedisClock({ redis, key: registryPrefix, logger, wallMs: Date.now, monotonicMs }),
    )
    const wallMs = redisClock.nowMs
    const durability = startLater(
      new DurabilityCheck({ redis, allowUnsafe: config.REDIS_ALLOW_UNSAFE, durable, logger }),
    )
    const fetchMonitor = new FetchMonitor(monotonicMs)

    const access = clickhouseAccessFrom(config)
    const connectionsMax = 2 * (workerLimits.insertsInFlightMax + workerLimits.repairsInFlightMax)
    const clickhouse = closeAtEnd(
      connectClickHouse(access, { requestTimeoutMs: workerLimits.insertTimeoutMs, connectionsMax }),
    )
    const questions = closeAtEnd(
      connectClickHouse(access, {
        requestTimeoutMs: watchLimits.questionTimeoutMs,
        // Each query in flight has one question at a time.
        connectionsMax,
        reusesConnections: false,
      }),
    )
    const watch = new QueryWatch({ client: questions, isCluster: access.cluster !== undefined, monotonicMs })
    const clickhouseClock = startLater(
      new ClickHouseClock({ client: clickhouse, wallMs, monotonicMs, logger, watch }),
    )

    const { identity } = new Registry(redis, registryPrefix)
    const installations = new Installations(clickhouse, watch, prefix)
    const registryCheck = startLater(new RegistryCheck({ redis, identity, ids: installations, logger }))

    const health = new InsertHealth(clock, events)
    const stopping = new AbortController()
    const { signal } = stopping
    const retrier = new Retrier({ logger, signal, clock, random: Math.random, events })
    // Ids of batches and dead letters only need to be unique, and nothing reads the time in them.
    const ids = new IdSource(Date.now)
    const makeId = (): string => ids.next()
    // A lookup may take many queries.
    const lookupWatch: Pick<QueryWatcher, 'run'> = {
      run: (queryId, send) => watch.run(queryId, send).finally(() => progress.ended()),
    }
    const queries = observeQueries(events, clock, {
      beforeAttempt: () => clickhouseClock.check(),
      frameInserter: new FrameInserter(clickhouse, watch),
      storedRows: new StoredRows(clickhouse, wallMs, lookupWatch),
    })
    const insertOnce = {
      areTokensAtomic: config.CLICKHOUSE_CLUSTER !== undefined,
      sleep: (ms: number) => clock.sleep(ms),
      beforeAttempt: queries.beforeAttempt,
      onTokenWithoutRows: (token: string) =>
        logger.warn({ token }, 'ClickHouse has a token without its rows'),
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
      ledger: new BatchLedger(durable, names),
      consumer: new ChunkConsumer({
        redis,
        durable,
        names,
        workerId,
        lockDurationMs: config.LOCK_DURATION_MS,
        logger,
        fetchMonitor,
      }),
    })
    const dependencies: ShardDependencies = {
      config,
      rowInserter: new RowInserter({ ...insertOnce, ...queries }),
      rowCheck: new RowCheck(clickhouse, watch),
      deadLetters: new DeadLetters({
        ...insertOnce,
        client: clickhouse,
        watch,
        makeId,
        wallMs,
      }),
      health,
      insertNothing: queries.insertNothing,
      insertSlots: new Semaphore(workerLimits.insertsInFlightMax, signal),
      repairPermits: new Semaphore(workerLimits.repairsInFlightMax, signal),
      rejectedProjects: new RejectedProjects(clock),
      chunkBudget: new HeldBudget(workerLimits.chunksMax),
      byteBudget: new HeldBudget(workerLimits.heldBytesMax),
      heldInAllShards: heldChunks,
      signal,
      retrier,
      events,
      makeId,
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
    const progress: Progress = new Progress({ events, shards: () => shards.watched, heldChunks, clock })

    const readiness = (): { ready: boolean; reasons: string[] } => {
      const checks = [fetchMonitor, watch, durability, registryCheck, redisClock, clickhouseClock]
      const reasons = [
        ...(redis.status === 'ready' ? [] : [`the connection to Redis is ${redis.status}`]),
        ...checks.flatMap((check) => check.readiness.reasons),
        ...(health.failure === undefined ? [] : [health.failure]),
        ...retrier.failures,
      ]
      return { ready: reasons.length === 0, reasons }
    }
    const redisCheck = redisDependency(redis)
    const dependencyStates = startLater(
      new Dependencies({
        checks: () => [
          redisCheck,
          { name: 'clickhouse', failure: () => health.lastError ?? watch.readiness.reasons[0] },
          ...shards.watched.map(({ names }) => ({
            name: `shard ${names.shard}`,
            failure: () => fetchMonitor.failureOf(names.queuePrefix),
          })),
        ],
        monotonicMs,
      }),
    )
    const metrics = new Metrics({ app: 'worker', version: packageJson.version })
    exportProcess(metrics, { readiness, dependencies: dependencyStates, registry: registryCheck, logger })
    const recentWork = exportWorker(metrics, events, {
      chunksHeld: heldChunks,
      isInserting: () => health.failure === undefined,
      wallMs,
      monotonicMs,
    })
    startLater(
      new Reporting({
        redis: reportingRedis,
        prefix,
        shards: shardCount,
        memoryBytes: config.REDIS_MEMORY_BYTES,
        processId: workerId,
        role: 'worker',
        host: hostname(),
        pid: process.pid,
        version: packageJson.version,
        readiness,
        work: () => ({ chunksHeld: heldChunks(), ...recentWork() }),
        metrics,
        wallMs,
        monotonicMs,
        logger,
      }),
    )
    // With a connection of its own, so that no insert waits for a retry.
    const retrying = closeAtEnd(
      connectClickHouse(access, { requestTimeoutMs: workerLimits.insertTimeoutMs, connectionsMax: 1 }),
    )
    startLater(
      new DeadLetterRetries({
        redis: reportingRedis,
        requests: new RetryRequests(reportingRedis, prefix),
        store: new DeadLetterStore(retrying),
        late: lateInserts(durable, queueNames(prefix)),
        logger,
      }),
    )
    const ops = closeAtEnd(
      await startOpsServer({
        host: config.OPS_HOST,
        port: config.OPS_PORT,
        readiness,
        metrics: metrics.page,
        dependencies: () => dependencyStates.status,
        isAlive: () => fetchMonitor.isAlive && watch.isAlive && progress.isAlive,
      }),
    )

    for (const part of [...parts, shards]) part.start()
    stack.defer(async () => {
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
    const watching = new AbortController()
    stack.defer(() => watching.abort())
    // If it rejects, the process ends.
    void progress.watch(watching.signal)
    // A worker that never could insert learns it before its first batch. Without the clocks, since they may not be known yet.
    queries.frameInserter.insert([], 'probe').catch(() => undefined)
    logger.info({ opsUrl: ops.url }, 'working')

    return {
      opsUrl: ops.url,
      stop: async () => {
        stoppingMs = monotonicMs()
        await stack.disposeAsync()
      },
    }
  },
})
