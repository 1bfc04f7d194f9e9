/** The worker's limits. Those that may differ between installations are in config.ts. */
export const workerLimits = {
  /** Held chunks of all shards: several batches even if a chunk has a few rows. A held chunk is its frame and about 1 kB. */
  chunksMax: 4_096,
  /** Held frames, in bytes: two large batches and the next one. */
  heldBytesMax: 32 * 1024 * 1024,
  /** Chunks per batch. One script claims them all, and blocks Redis for about 3 µs each. */
  batchChunksMax: 2_000,
  /** One insert, in bytes before compression. ClickHouse holds this as one block in memory while it parses. */
  batchBytesMax: 64 * 1024 * 1024,
  /** New batches that are inserted at the same time, of all shards: one is parsed while another one is written. */
  insertsInFlightMax: 2,
  /** Batches in memory that need more than one insert, of all shards: recovered and rejected ones. They have their own slots. */
  repairsInFlightMax: 2,
  /** Batches per shard that wait for a repair. Only their ids are in memory. Above it, the shard fetches nothing. */
  repairsWaitingMax: 64,
  /** An insert that is silent for this long is given up, and retried with the same token, even if ClickHouse still runs it. */
  insertTimeoutMs: 60_000,
  /** How long after its failure an insert that was given up may still arrive at ClickHouse: assumption 4 of docs/exactly-once.md. */
  insertLingerMaxMs: 120_000,
  /** A claim that takes longer leaves its insert slot to others. Redis responds within milliseconds, or it is unavailable. */
  claimMaxMs: 2_000,
  /** A third of the time for which a lease is valid. */
  leaseRenewalMs: 5_000,
  /** One step of a repair at Redis. A shard whose Redis is unavailable must not keep a slot for repairs. */
  repairStepMaxMs: 10_000,
  retry: { baseMs: 100, maxMs: 5_000 },
  /** A worker none of whose inserts has succeeded for this long returns all of its chunks. Long enough for a restart of ClickHouse. */
  giveUpMs: 10_000,
  /** The time from one probe of such a worker to the next. */
  probeIntervalMs: 5_000,
  /** A row that ClickHouse rejects with an unknown code is dead-lettered after this time. An operator may repair the table meanwhile. */
  unknownRejectionMs: 180_000,
  /** The wait before a batch with such rows is retried. */
  suspendedRetryMs: 20_000,
  /** The wait before the retry of a repair that another worker has, or that failed. */
  repairRetryMs: 1_000,
  /** This long before the deadline of a shutdown, attempts to insert end, and their chunks are requeued, which takes milliseconds. */
  requeueMs: 2_000,
  /** This long before the deadline, or after half of it, chunks that could not be requeued are left behind, and connections are closed. */
  closeMs: 1_500,
  /** One query about the state of the queues. */
  reportTimeoutMs: 2_000,
  /** A step of a batch waits this long for replicas, and is then repeated. */
  replicationWaitMs: 5_000,
} as const
