import type { Command } from 'commander'
import type { Context } from '../context.ts'
import type { FailedChunkChoiceOptions, ListFailedChunksOptions } from '../failed-chunks.ts'
import { SLUICE } from '../program-name.ts'
import { examples } from './help.ts'
import { integer, JSON_OPTION, withRedisOptions } from './options.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 10_000
const CHUNK_IDS = `chunk ids, as listed by \`${SLUICE} failed-chunks list\``

const load = () => import('../failed-chunks.ts')

export function addFailedChunksCommands(program: Command, context: Context): void {
  const chunks = program
    .command('failed-chunks')
    .description('list, retry and remove chunks that no worker could deliver')
    .addHelpText(
      'after',
      examples(
        ['failed-chunks list', 'the newest failures'],
        ['failed-chunks retry --all', 'return all of them to the queue'],
      ),
    )

  withRedisOptions(
    chunks
      .command('list')
      .description('list failed chunks, newest failures first')
      .addHelpText(
        'after',
        examples(
          ['failed-chunks list', 'the newest 100, as a table'],
          ['failed-chunks list --limit 1000 --json', 'for a program'],
        ),
      )
      .option('--limit <count>', 'maximum number of chunks', integer(1, LIMIT_MAX), LIMIT_DEFAULT)
      .option(...JSON_OPTION),
  ).action(async (options: ListFailedChunksOptions) => (await load()).listFailedChunks(options, context))

  withRedisOptions(
    chunks
      .command('retry')
      .description('return chunks to the queue; rows that are stored already are not stored again')
      .addHelpText(
        'after',
        examples(
          ['failed-chunks retry 01a1fb3f-6d5c-7aa0-8f31-2c5e9d7b4a10', 'one chunk'],
          ['failed-chunks retry --all', 'all failed chunks'],
        ),
      )
      .argument('[ids...]', CHUNK_IDS)
      .option('--all', 'all failed chunks'),
  ).action(async (ids: string[], options: FailedChunkChoiceOptions) =>
    (await load()).retryFailedChunks(ids, options, context),
  )

  withRedisOptions(
    chunks
      .command('purge')
      .description('permanently remove chunks and their rows, which were acknowledged')
      .addHelpText(
        'after',
        examples(
          ['failed-chunks purge 01a1fb3f-6d5c-7aa0-8f31-2c5e9d7b4a10', 'one chunk'],
          ['failed-chunks purge --all', 'all failed chunks'],
        ),
      )
      .argument('[ids...]', CHUNK_IDS)
      .option('--all', 'all failed chunks'),
  ).action(async (ids: string[], options: FailedChunkChoiceOptions) =>
    (await load()).purgeFailedChunks(ids, options, context),
  )
}
