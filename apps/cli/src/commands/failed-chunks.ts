import { type FailedChunk, type FailedChunkOutcome, FailedChunks, ShardCount } from '@sluice/queue'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { JSON_OPTION, LIMIT_OPTION, withChoice, withConnections, withExamples } from '../options.ts'
import { withRedis } from '../redis-session.ts'
import { redisAccess } from '../service-access.ts'
import { escapeControls, formatCount, type Listing, printList } from '../terminal.ts'

export function define(chunks: Command, context: Context): void {
  const { stdout, stderr } = context

  async function withFailedChunks<Result>(task: (failed: FailedChunks) => Promise<Result>): Promise<Result> {
    const access = await redisAccess(chunks.opts(), context)
    return withRedis(access, async (redis, durable) => {
      // A single shard is not recorded: this reads the number only.
      const count = new ShardCount(redis, access.prefix, 1)
      await count.refresh()
      const failed = new FailedChunks(redis, count.names, durable)
      try {
        return await task(failed)
      } finally {
        await failed.close()
      }
    })
  }

  /** Reports the failures. @returns how many chunks have each outcome */
  async function report(outcomes: ReadonlyMap<string, FailedChunkOutcome>) {
    for (const [id, outcome] of outcomes) {
      const failure = failures[outcome]
      if (failure === undefined) continue
      await stderr.write(`${escapeControls(id)} ${failure}\n`)
      context.exitCode = 1
    }
    return (wanted: FailedChunkOutcome) =>
      [...outcomes.values()].filter((outcome) => outcome === wanted).length
  }

  withExamples(
    withConnections(chunks, 'redis'),
    ['failed-chunks list --limit 1000 --json', 'for a program'],
    ['failed-chunks retry --all', 'return all of them to the queue'],
  )

  chunks
    .command('list')
    .description('list failed chunks, newest failures first')
    .option(...LIMIT_OPTION)
    .option(...JSON_OPTION)
    .action(async ({ limit, json }: { limit: number; json?: true }) => {
      await printList(await withFailedChunks((failed) => failed.list(limit)), listing, json, context)
    })

  const retry = chunks
    .command('retry')
    .description('return chunks to the queue; rows that are stored already are not stored again')
  withChoice(retry, async (choice) => {
    const count = await report(await withFailedChunks((failed) => failed.retry(choice)))
    await stdout.write(`${count('requeued')} requeued, ${count('stored')} stored already.\n`)
  })

  const purge = chunks
    .command('purge')
    .description('permanently remove chunks and their rows, which were acknowledged')
  withChoice(
    purge,
    async (choice) => {
      const count = await report(await withFailedChunks((failed) => failed.purge(choice)))
      await stdout.write(`${count('removed')} removed.\n`)
    },
    async () =>
      `${formatCount(await withFailedChunks((failed) => failed.count()))} failed chunks with their rows`,
  )
}

const failures: Readonly<Partial<Record<FailedChunkOutcome, string>>> = {
  damaged: 'is damaged and cannot be retried',
  needed: 'is needed by other chunks of its batch: remove all of them, or retry it',
  missing: 'is not a failed chunk',
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
