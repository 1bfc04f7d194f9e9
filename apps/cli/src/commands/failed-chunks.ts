import {
  type FailedChunk,
  FailedChunks,
  type PurgeOutcome,
  type RetryOutcome,
  ShardCount,
} from '@sluice/queue'
import type { Command } from 'commander'
import { randomUUID } from 'node:crypto'
import type { Context } from '../context.ts'
import { integer, JSON_OPTION, requireChoice, SLUICE, withExamples, withRedisOptions } from '../options.ts'
import { withRedis } from '../redis-session.ts'
import { redisAccess, type RedisFlags } from '../service-access.ts'
import { escapeControls, painter, table } from '../terminal.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 10_000
const CHUNK_IDS = `chunk ids, as listed by \`${SLUICE} failed-chunks list\``

export function defineFailedChunks(chunks: Command, context: Context): void {
  withExamples(
    chunks,
    ['failed-chunks list', 'the newest failures'],
    ['failed-chunks retry --all', 'return all of them to the queue'],
  )

  withExamples(
    withRedisOptions(
      chunks
        .command('list')
        .description('list failed chunks, newest failures first')
        .option('--limit <count>', 'maximum number of chunks', integer(1, LIMIT_MAX), LIMIT_DEFAULT)
        .option(...JSON_OPTION),
    ),
    ['failed-chunks list', 'the newest 100, as a table'],
    ['failed-chunks list --limit 1000 --json', 'for a program'],
  ).action((options: ListOptions) => listChunks(options, context))

  withExamples(
    withRedisOptions(
      chunks
        .command('retry')
        .description('return chunks to the queue; rows that are stored already are not stored again')
        .argument('[ids...]', CHUNK_IDS)
        .option('--all', 'all failed chunks'),
    ),
    ['failed-chunks retry 01a1fb3f-6d5c-7aa0-8f31-2c5e9d7b4a10', 'one chunk'],
    ['failed-chunks retry --all', 'all failed chunks'],
  ).action((ids: string[], options: ChoiceOptions) => retryChunks(ids, options, context))

  withExamples(
    withRedisOptions(
      chunks
        .command('purge')
        .description('permanently remove chunks and their rows, which were acknowledged')
        .argument('[ids...]', CHUNK_IDS)
        .option('--all', 'all failed chunks'),
    ),
    ['failed-chunks purge 01a1fb3f-6d5c-7aa0-8f31-2c5e9d7b4a10', 'one chunk'],
    ['failed-chunks purge --all', 'all failed chunks'],
  ).action((ids: string[], options: ChoiceOptions) => purgeChunks(ids, options, context))
}

interface ListOptions extends RedisFlags {
  limit: number
  json?: true
}

async function listChunks({ limit, json, ...flags }: ListOptions, context: Context): Promise<void> {
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

interface ChoiceOptions extends RedisFlags {
  all?: true
}

/** Why a chunk was not retried. */
const notRetried: Readonly<Partial<Record<RetryOutcome, string>>> = {
  damaged: 'is damaged and cannot be retried',
  missing: 'is not a failed chunk',
}

async function retryChunks(
  ids: readonly string[],
  { all, ...flags }: ChoiceOptions,
  context: Context,
): Promise<void> {
  requireChoice('failed chunks', ids, all)
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

async function purgeChunks(
  ids: readonly string[],
  { all, ...flags }: ChoiceOptions,
  context: Context,
): Promise<void> {
  requireChoice('failed chunks', ids, all)
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
