/** The worker's limits. What may differ between installations is in config.ts. */
export const workerLimits = {
  /**
   * Chunks in hand: two batches' worth even when chunks are small, since low load makes chunks of a few rows. A chunk
   * in hand is a promise and its frame. Shards have equal parts of it, and of the bytes: one that is stuck keeps its own.
   */
  chunksMax: 1_024,
  /**
   * Frames in hand, in bytes of base64; over it no more chunks are fetched. Two large batches and the next. What is fetched
   * in one go may exceed it.
   */
  heldBytesMax: 32 * 1024 * 1024,
  fetch: {
    /** From one fetch to the next while chunks come: a fraction of what rows wait for others anyway. */
    intervalMs: 20,
    /** The same while none come. An empty fetch costs Redis some 0.1 ms, and is written to no disk. */
    idleIntervalMs: 100,
    /** Chunks in one go: more are fetched at once, without waiting. */
    jobsMax: 16,
    /** Redis refuses to hand out chunks when it is full, for example. */
    restAfterRefusalMs: 1_000,
  },
  /** One insert, in bytes before compression: what ClickHouse holds in memory as one block while it parses. */
  batchBytesMax: 64 * 1024 * 1024,
  /**
   * Collecting goes on while one batch is inserted and another waits for its turn. So many batches of each shard are on
   * their way at once, and so many inserts of all shards together.
   */
  insertsInFlightMax: 2,
  /** An insert that says nothing for this long is given up and tried again with the same token. */
  insertTimeoutMs: 60_000,
  /** How long after it was given up such an insert may still bring rows in. Nothing is split before that is over. */
  landingMaxMs: 60_000,
  retry: { baseMs: 100, maxMs: 5_000 },
  /** What is left of the shutdown deadline for handing back what could not be inserted. */
  handBackMs: 1_500,
} as const

/**
 * A batch must be one block per partition, so that ClickHouse applies its token to the whole of it: these settings of
 * the insert are far above what a batch can be.
 */
export const blockRowsMin = 100_000_000
export const blockBytesMin = 64 * workerLimits.batchBytesMax
