/** The worker's limits. Those that may differ between installations are in config.ts. */
export const workerLimits = {
  /**
   * Chunks in hand: two batches even if chunks are small, as under low load, when a chunk has a few rows. A chunk in hand is a promise
   * and its frame. Each shard has an equal part of this limit and of `heldBytesMax`, so that a stuck shard only blocks itself.
   */
  chunksMax: 1_024,
  /** Frames in hand, in bytes of base64: two large batches and the next one. */
  heldBytesMax: 32 * 1024 * 1024,
  /** One insert, in bytes before compression. ClickHouse holds this as one block in memory while it parses. */
  batchBytesMax: 64 * 1024 * 1024,
  /** Batches in flight per shard, and inserts in flight of all shards: one is inserted while another waits and a third is collected. */
  insertsInFlightMax: 2,
  /**
   * An insert that is silent for this long is given up, and retried with the same token, even if ClickHouse still runs it. One that
   * ClickHouse does not run is given up sooner (`watchLimits`).
   */
  insertTimeoutMs: 60_000,
  /**
   * How long after it was sent an insert that was given up may still arrive at ClickHouse. No single row is dead-lettered before this
   * time is over. The kernel sends the data of a closed connection again for about 100 s.
   */
  insertLingerMaxMs: 120_000,
  retry: { baseMs: 100, maxMs: 5_000 },
  /** The part of the shutdown deadline that is reserved for requeuing chunks that could not be inserted. */
  requeueMs: 1_500,
} as const
