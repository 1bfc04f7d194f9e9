import type { Command } from 'commander'
import type { Context } from '../context.ts'
import type { FailedChunkChoiceOptions, ListFailedChunksOptions } from '../failed-chunks.ts'
import { integer, JSON_OPTION, withRedisOptions } from './options.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 10_000
const CHUNK_IDS = 'chunk ids, as listed by `sluice failed-chunks list`'

const load = () => import('../failed-chunks.ts')

export function addFailedChunksCommands(program: Command, context: Context): void {
  const chunks = program
    .command('failed-chunks')
    .description('list, retry and remove chunks that no worker could deliver')

  withRedisOptions(
    chunks
      .command('list')
      .description('list failed chunks, newest failures first')
      .option('--limit <count>', 'maximum number of chunks', integer(1, LIMIT_MAX), LIMIT_DEFAULT)
      .option(...JSON_OPTION),
  ).action(async (options: ListFailedChunksOptions) => (await load()).listFailedChunks(options, context))

  withRedisOptions(
    chunks
      .command('retry')
      .description('return chunks to the queue; rows that are stored already are not stored again')
      .argument('[ids...]', CHUNK_IDS)
      .option('--all', 'all failed chunks'),
  ).action(async (ids: string[], options: FailedChunkChoiceOptions) =>
    (await load()).retryFailedChunks(ids, options, context),
  )

  withRedisOptions(
    chunks
      .command('purge')
      .description('permanently remove chunks and their rows, which were acknowledged')
      .argument('[ids...]', CHUNK_IDS)
      .option('--all', 'all failed chunks'),
  ).action(async (ids: string[], options: FailedChunkChoiceOptions) =>
    (await load()).purgeFailedChunks(ids, options, context),
  )
}
