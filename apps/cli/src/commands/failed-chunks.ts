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
import {
  integer,
  JSON_OPTION,
  requireChoice,
  withChoice,
  withExamples,
  withRedisOptions,
} from '../options.ts'
import { withRedis } from '../redis-session.ts'
import { redisAccess, type RedisFlags } from '../service-access.ts'
import { escapeControls, type Listing, printList } from '../terminal.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 10_000
const NAMES = 'failed chunks'

export function define(chunks: Command, context: Context): void {
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
      withChoice(
        chunks
          .command('retry')
          .description('return chunks to the queue; rows that are stored already are not stored again'),
        NAMES,
      ),
    ),
    ['failed-chunks retry 01a1fb3f-6d5c-7aa0-8f31-2c5e9d7b4a10', 'one chunk'],
    ['failed-chunks retry --all', 'all failed chunks'],
  ).action((ids: string[], options: ChoiceOptions) => retryChunks(ids, options, context))

  withExamples(
    withRedisOptions(
      withChoice(
        chunks
          .command('purge')
          .description('permanently remove chunks and their rows, which were acknowledged'),
        NAMES,
      ),
    ),
    ['failed-chunks purge 01a1fb3f-6d5c-7aa0-8f31-2c5e9d7b4a10', 'one chunk'],
    ['failed-chunks purge --all', 'all failed chunks'],
  ).action((ids: string[], options: ChoiceOptions) => purgeChunks(ids, options, context))
}

interface ListOptions extends RedisFlags {
  limit: number
  json?: true
}

const failedAt = ({ failedAtMs }: FailedChunk): string => new Date(failedAtMs).toISOString()

const listing: Listing<FailedChunk> = {
  headings: ['ID', 'FAILED', 'SHARD', 'ROWS', 'BATCH', 'REASON'],
  cells: (chunk) => {
    const { id, shard, rows = '-', batchId = '-', reason } = chunk
    return [id, failedAt(chunk), `${shard}`, `${rows}`, batchId, reason]
  },
  object: (chunk) => {
    const { id, shard, reason, rows = null, batchId = null } = chunk
    return { id, shard, failedAt: failedAt(chunk), reason, rows, batchId }
  },
  empty: 'There are no failed chunks.',
}

async function listChunks({ limit, json, ...flags }: ListOptions, context: Context): Promise<void> {
  const chunks = await withFailedChunks(flags, context, (failed) => failed.list(limit))
  await printList(chunks, listing, json, context)
}

interface ChoiceOptions extends RedisFlags {
  all?: true
}

/** Why a chunk was not retried or removed. */
const failures: Readonly<Partial<Record<RetryOutcome | PurgeOutcome, string>>> = {
  damaged: 'is damaged and cannot be retried',
  needed: 'is needed by other chunks of its batch: remove all of them, or retry it',
  missing: 'is not a failed chunk',
}

async function retryChunks(ids: readonly string[], options: ChoiceOptions, context: Context): Promise<void> {
  const count = await settle(ids, options, context, (failed, choice) => failed.retry(choice))
  await context.stdout.write(`${count('requeued')} requeued, ${count('stored')} stored already.\n`)
}

async function purgeChunks(ids: readonly string[], options: ChoiceOptions, context: Context): Promise<void> {
  const count = await settle(ids, options, context, (failed, choice) => failed.purge(choice))
  await context.stdout.write(`${count('removed')} removed.\n`)
}

/** Retries or removes the chosen chunks, and reports the failures. @returns a function that counts an outcome */
async function settle<Outcome extends RetryOutcome | PurgeOutcome>(
  ids: readonly string[],
  { all, ...flags }: ChoiceOptions,
  context: Context,
  act: (failed: FailedChunks, choice: readonly string[] | 'all') => Promise<ReadonlyMap<string, Outcome>>,
): Promise<(wanted: Outcome) => number> {
  const choice = requireChoice(NAMES, ids, all)
  const outcomes = await withFailedChunks(flags, context, (failed) => act(failed, choice))
  for (const [id, outcome] of outcomes) {
    const failure = failures[outcome]
    if (failure === undefined) continue
    await context.stderr.write(`${escapeControls(id)} ${failure}\n`)
    context.exitCode = 1
  }
  return (wanted) => [...outcomes.values()].filter((outcome) => outcome === wanted).length
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
