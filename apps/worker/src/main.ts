import {
  clickhouseAccessFrom,
  ClickHouseClock,
  connectClickHouse,
  DeadLetters,
  FrameInserter,
  QueryWatch,
  RowInserter,
  StoredRows,
  watchLimits,
} from '@sluice/clickhouse'
import { Dependencies, exportProcess, Metrics, redisDependency, Reporting, startOpsServer } from '@sluice/ops'
import { BatchLedger, ChunkConsumer, FetchMonitor, type QueueNames, ShardCount } from '@sluice/queue'
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
  runProcess,
} from '@sluice/runtime'
import { startTraces } from '@sluice/traces'
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import packageJson from '../package.json' with { type: 'json' }
import { BatchSpans } from './batch-spans.ts'
import { readWorkerConfig } from './config.ts'
import { HeldBudget } from './held-budget.ts'
import { InsertHealth } from './insert-health.ts'
import { workerLimits } from './limits.ts'
import { observeQueries, observeSteps } from './observed-clickhouse.ts'
import { ProgressWatchdog } from './progress-watchdog.ts'
import { Retrier } from './retrier.ts'
import { Semaphore } from './semaphore.ts'
import { ServedShards } from './served-shards.ts'
import type { ShardQueue } from './shard-queue.ts'
import { fetchLimits } from './shard.ts'
import { type ShardDependencies, startShard } from './start-shard.ts'
import { countWorker, exportWorker } from './worker-counts.ts'

const config = readSettingsOrExit('worker', () => readWorkerConfig(process.env))
const logger = createLogger('worker', config.LOG_LEVEL, config.LOG_FORMAT)
const monotonicMs = (): number => clock.nowMs()

await runProcess({
  logger,
  deadlineMs: config.SHUTDOWN_DEADLINE_MS,
  start: async () => {
    const redisAccess = {
      tlsCaFile: config.REDIS_TLS_CA_FILE,
      sentinelPassword: config.REDIS_SENTINEL_PASSWORD,
    }
    const redis = connectRedis(config.REDIS_URL, { ...redisAccess, failFast: false })
    const onError = (error: Error): void => logger.warn({ err: error }, 'redis connection failed')
    redis.on('error', onError)
    const durable = durableRedis(redis, {
      ...redisAccess,
      url: config.REDIS_URL,
      replicas: config.REDIS_REPLICAS_ACK,
      waitMs: workerLimits.replicationWaitMs,
      onError,
    })
    const durability = new DurabilityCheck({
      redis,
      allowUnsafe: config.REDIS_ALLOW_UNSAFE,
      durable,
      logger,
    })
    const redisClock = new RedisClock({
      redis,
      key: installationNames(config.SLUICE_PREFIX).registryPrefix,
      logger,
      wallMs: Date.now,
      monotonicMs,
    })
    const fetchMonitor = new FetchMonitor(monotonicMs)
    const access = clickhouseAccessFrom(config)
    const connectionsMax = 2 * (workerLimits.insertsInFlightMax + workerLimits.repairsInFlightMax)
    const clickhouse = connectClickHouse(access, {
      requestTimeoutMs: workerLimits.insertTimeoutMs,
      connectionsMax,
    })
    const questions = connectClickHouse(access, {
      requestTimeoutMs: watchLimits.questionTimeoutMs,
      // Each query in flight has one question at a time.
      connectionsMax,
      reusesConnections: false,
    })
    const watch = new QueryWatch({ client: questions, isCluster: access.cluster !== undefined, monotonicMs })
    const clickhouseClock = new ClickHouseClock({
      client: clickhouse,
      wallMs: redisClock.nowMs,
      monotonicMs,
      logger,
      watch,
    })
    // Ids of batches and dead letters only need to be unique, and nothing reads the time in them.
    const ids = new IdSource(Date.now)
    const makeId = (): string => ids.next()
    const stopping = new AbortController()
    const { signal } = stopping
    const metrics = new Metrics({ app: 'worker', version: packageJson.version })
    const counts = countWorker(metrics, redisClock.nowMs)
    const retrier = new Retrier({
      logger,
      signal,
      clock,
      random: Math.random,
      onFailure: (failure) => counts.retries.add(failure),
    })
    const workerId = randomUUID()
    const traces = await startTraces({
      endpoint: config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
      app: 'worker',
      version: packageJson.version,
      instanceId: workerId,
      logger,
    })
    const spans = traces === undefined ? undefined : new BatchSpans(traces, monotonicMs)
    const frameInserter = new FrameInserter(clickhouse, watch)
    const health = new InsertHealth(clock, workerLimits, () => watchdog.excuse())
    const observed = observeSteps(health, counts, {
      checkClock: () => clickhouseClock.check(),
      frameInserter: spans === undefined ? frameInserter : spans.inserter(frameInserter),
      storedRows: new StoredRows(
        clickhouse,
        redisClock.nowMs,
        observeQueries(watch, () => watchdog.excuse()),
      ),
    })
    const insertOnce = {
      areTokensAtomic: config.CLICKHOUSE_CLUSTER !== undefined,
      sleep: (ms: number) => clock.sleep(ms),
      beforeAttempt: observed.beforeAttempt,
      onTokenWithoutRows: (token: string) =>
        logger.warn({ token }, 'ClickHouse has a token without its rows'),
    }
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
      rowInserter: new RowInserter({ ...insertOnce, ...observed }),
      deadLetters: new DeadLetters(clickhouse, makeId, redisClock.nowMs, insertOnce, watch),
      health,
      insertNothing: observed.insertNothing,
      insertSlots: new Semaphore(workerLimits.insertsInFlightMax, signal),
      repairPermits: new Semaphore(workerLimits.repairsInFlightMax, signal),
      chunkBudget: new HeldBudget(workerLimits.chunksMax),
      byteBudget: new HeldBudget(workerLimits.heldBytesMax),
      heldInAllShards: () => shards.heldChunks,
      signal,
      retrier,
      counts,
      makeId,
      workerId,
      clock,
      fetchLimits,
      logger,
    }
    const shardCount = new ShardCount(redis, config.SLUICE_PREFIX, config.QUEUE_SHARDS)
    const shards: ServedShards = new ServedShards({
      shards: shardCount,
      start: (names) => startShard(openQueue(names), { ...dependencies, spans: spans?.ofShard(names.shard) }),
      clock,
      logger,
    })
    shards.start()
    const watchdog: ProgressWatchdog = new ProgressWatchdog({
      ...dependencies,
      shards: () =>
        shards.served.map(({ names, running }) => ({
          shard: names.shard,
          progress: running.progress,
          askRedis: () => shardCount.isEmpty(names),
        })),
    })
    redis.on('error', () => watchdog.excuse())
    // If it rejects, the process ends.
    void watchdog.run()
    const readiness = (): { ready: boolean; reasons: string[] } => {
      const reasons = [
        ...(redis.status === 'ready' ? [] : [`the connection to Redis is ${redis.status}`]),
        ...fetchMonitor.readiness.reasons,
        ...watch.readiness.reasons,
        ...durability.readiness.reasons,
        ...(health.failure === undefined ? [] : [health.failure]),
        ...redisClock.readiness.reasons,
        ...clickhouseClock.readiness.reasons,
        ...retrier.failures,
        ...watchdog.reasons,
      ]
      return { ready: reasons.length === 0, reasons }
    }
    // A shard that does not answer must not delay the report of the others.
    const reportingRedis = connectRedis(config.REDIS_URL, {
      ...redisAccess,
      failFast: true,
      commandTimeoutMs: workerLimits.reportTimeoutMs,
    })
    reportingRedis.on('error', onError)
    const reporting = new Reporting({
      redis: reportingRedis,
      prefix: config.SLUICE_PREFIX,
      shards: shardCount,
      memoryBytes: config.REDIS_MEMORY_BYTES,
      processId: workerId,
      role: 'worker',
      host: hostname(),
      pid: process.pid,
      version: packageJson.version,
      readiness,
      work: () => ({ chunksHeld: shards.heldChunks, lag: counts.recentLag.read() }),
      metrics,
      wallMs: redisClock.nowMs,
      monotonicMs,
      logger,
    })
    exportWorker(metrics, counts, {
      chunksHeld: () => shards.heldChunks,
      isInserting: () => health.failure === undefined,
    })
    const redisCheck = redisDependency(redis)
    const dependencyStates = new Dependencies({
      checks: () => [
        redisCheck,
        {
          name: 'clickhouse',
          failure: () => health.lastError ?? watch.readiness.reasons[0],
        },
        ...shards.served.map(({ names }) => ({
          name: `shard ${names.shard}`,
          failure: () => fetchMonitor.failureOf(names.queuePrefix),
        })),
      ],
      monotonicMs,
    })
    dependencyStates.start()
    exportProcess(metrics, { readiness, dependencies: dependencyStates, logger })
    durability.start()
    redisClock.start()
    clickhouseClock.start()
    // A worker that never could insert learns it before its first batch. Without the clocks, since they may not be known yet.
    observed.frameInserter.insert([], 'probe').catch(() => undefined)
    const ops = await startOpsServer({
      host: config.OPS_HOST,
      port: config.OPS_PORT,
      readiness,
      metrics: metrics.page,
      dependencies: () => dependencyStates.status,
      isAlive: () => fetchMonitor.isAlive && watch.isAlive && watchdog.isAlive,
    })
    reporting.start()
    logger.info({ opsUrl: ops.url }, 'working')

    return {
      stop: async () => {
        const stoppingMs = monotonicMs()
        const requeue = setTimeout(
          () => stopping.abort(),
          Math.max(0, config.SHUTDOWN_DEADLINE_MS - workerLimits.requeueMs),
        )
        watchdog.stop()
        dependencyStates.stop()
        await shards.stop()
        clearTimeout(requeue)
        clickhouseClock.stop()
        await clickhouse.close()
        await questions.close()
        durability.stop()
        redisClock.stop()
        await ops.close()
        await reporting.stop()
        await durable.close()
        redis.disconnect()
        reportingRedis.disconnect()
        // Last, and never in the second half of the time: a silent endpoint must not make a shutdown fail.
        await traces?.close(stoppingMs + config.SHUTDOWN_DEADLINE_MS / 2)
      },
    }
  },
})
