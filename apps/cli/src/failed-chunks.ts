import {
  type FailedChunk,
  FailedChunks,
  type PurgeOutcome,
  type RetryOutcome,
  ShardCount,
} from '@sluice/queue'
import { randomUUID } from 'node:crypto'
import type { Context } from './context.ts'
import { UsageError } from './errors.ts'
import { withRedis } from './redis-session.ts'
import { redisAccess, type RedisFlags } from './service-access.ts'
import { escapeControls, painter, table } from './terminal.ts'

export interface ListFailedChunksOptions extends RedisFlags {
  limit: number
  json?: true
}

export interface FailedChunkChoiceOptions extends RedisFlags {
  all?: true
}

/** `sluice failed-chunks list` */
export async function listFailedChunks(
  { limit, json, ...flags }: ListFailedChunksOptions,
  context: Context,
): Promise<void> {
  const chunks = await withFailedChunks(flags, context, (failed) => failed.list(limit))
  if (json) {
    await context.stdout.write(chunks.map((chunk) => `${JSON.stringify(jsonOf(chunk))}\n`).join(''))
  } else if (chunks.length === 0) {
    await context.stderr.write('There are no failed chunks.\n')
  } else {
    const rows = chunks.map((chunk) => [
      chunk.id,
      failedAt(chunk),
      `${chunk.shard}`,
      `${chunk.rows ?? '-'}`,
      chunk.batchId ?? '-',
      chunk.reason,
    ])
    const headings = ['ID', 'FAILED', 'SHARD', 'ROWS', 'BATCH', 'REASON']
    await context.stdout.write(table([headings, ...rows], painter(context.stdout.colours)))
  }
}

function jsonOf(chunk: FailedChunk): object {
  const { id, shard, reason, rows = null, batchId = null } = chunk
  return { id, shard, failedAt: failedAt(chunk), reason, rows, batchId }
}

const failedAt = ({ failedAtMs }: FailedChunk): string => new Date(failedAtMs).toISOString()

/** Why a chunk was not retried. */
const notRetried: Readonly<Partial<Record<RetryOutcome, string>>> = {
  damaged: 'is damaged and cannot be retried',
  missing: 'is not a failed chunk',
}

/** `sluice failed-chunks retry` */
export async function retryFailedChunks(
  ids: readonly string[],
  { all, ...flags }: FailedChunkChoiceOptions,
  context: Context,
): Promise<void> {
  requireChoice(ids, all)
  const outcomes = await withFailedChunks(flags, context, (failed) => failed.retry(all ? 'all' : ids))
  await reportFailures(outcomes, notRetried, context)
  const requeued = countOf(outcomes, 'requeued')
  await context.stdout.write(`${requeued} requeued, ${countOf(outcomes, 'stored')} stored already.\n`)
}

/** Why a chunk was not removed. */
const notRemoved: Readonly<Partial<Record<PurgeOutcome, string>>> = {
  needed: 'is needed by other chunks of its batch: remove all of them, or retry it',
  missing: 'is not a failed chunk',
}

/** `sluice failed-chunks purge` */
export async function purgeFailedChunks(
  ids: readonly string[],
  { all, ...flags }: FailedChunkChoiceOptions,
  context: Context,
): Promise<void> {
  requireChoice(ids, all)
  const outcomes = await withFailedChunks(flags, context, (failed) => failed.purge(all ? 'all' : ids))
  await reportFailures(outcomes, notRemoved, context)
  await context.stdout.write(`${countOf(outcomes, 'removed')} removed.\n`)
}

async function reportFailures<Outcome extends string>(
  outcomes: ReadonlyMap<string, Outcome>,
  failures: Readonly<Partial<Record<Outcome, string>>>,
  context: Context,
): Promise<void> {
  for (const [id, outcome] of outcomes) {
    const failure = failures[outcome]
    if (failure === undefined) continue
    await context.stderr.write(`${escapeControls(id)} ${failure}\n`)
    context.exitCode = 1
  }
}

function countOf<Outcome>(outcomes: ReadonlyMap<string, Outcome>, wanted: Outcome): number {
  return [...outcomes.values()].filter((outcome) => outcome === wanted).length
}

async function withFailedChunks<Result>(
  flags: RedisFlags,
  context: Context,
  task: (failed: FailedChunks) => Promise<Result>,
): Promise<Result> {
  const access = await redisAccess(flags, context)
  return withRedis(access, async (redis, durable) => {
    // A single shard is not recorded: this reads the number only.
    const count = new ShardCount(redis, access.prefix, 1)
    await count.refresh()
    const failed = new FailedChunks({ redis, durable, shards: count.names, makeId: randomUUID })
    try {
      return await task(failed)
    } finally {
      await failed.close()
    }
  })
}

/** Retrying or removing all failed chunks must be requested explicitly. */
function requireChoice(ids: readonly string[], all: true | undefined): void {
  if (ids.length > 0 === (all === true))
    throw new UsageError('name the failed chunks by their ids, or pass --all')
}
