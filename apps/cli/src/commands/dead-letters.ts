import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import type { DeadLetterChoiceOptions, ListDeadLettersOptions } from '../dead-letters.ts'
import type { ClickHouseFlags } from '../service-access.ts'
import { integer, JSON_OPTION, withClickHouseOptions } from './options.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 10_000
const LETTER_IDS = 'dead letter ids, as listed by `sluice dead-letters list`'

const load = () => import('../dead-letters.ts')

export function addDeadLettersCommands(program: Command, context: Context): void {
  const letters = program
    .command('dead-letters')
    .description('list, retry and remove rows that ClickHouse rejected')

  withClickHouseOptions(
    letters
      .command('list')
      .description('list dead letters, newest first')
      .option('--project <id>', 'only those of this project')
      .option('--limit <count>', 'maximum number of dead letters', integer(1, LIMIT_MAX), LIMIT_DEFAULT)
      .option(...JSON_OPTION),
  ).action(async (options: ListDeadLettersOptions) => (await load()).listDeadLetters(options, context))

  withClickHouseOptions(
    letters
      .command('show')
      .description('print a dead letter: its row, and why ClickHouse rejected it')
      .argument('<id>', 'dead letter id, as listed by `sluice dead-letters list`', uuid),
  ).action(async (id: string, options: ClickHouseFlags) =>
    (await load()).showDeadLetter(id, options, context),
  )

  withClickHouseOptions(
    letters
      .command('retry')
      .description('insert the rows again; rows that ClickHouse accepts are no longer dead letters')
      .argument('[ids...]', LETTER_IDS, uuids)
      .option('--all', 'all dead letters'),
  ).action(async (ids: string[], options: DeadLetterChoiceOptions) =>
    (await load()).retryDeadLetters(ids, options, context),
  )

  withClickHouseOptions(
    letters
      .command('purge')
      .description('permanently remove dead letters')
      .argument('[ids...]', LETTER_IDS, uuids)
      .option('--all', 'all dead letters'),
  ).action(async (ids: string[], options: DeadLetterChoiceOptions) =>
    (await load()).purgeDeadLetters(ids, options, context),
  )
}

function uuid(text: string): string {
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text
  throw new InvalidArgumentError('It must be the id of a dead letter.')
}

function uuids(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, uuid(text)]
}
