import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import type { DeadLetterChoiceOptions, ListDeadLettersOptions } from '../dead-letters.ts'
import { SLUICE } from '../program-name.ts'
import type { ClickHouseFlags } from '../service-access.ts'
import { examples } from './help.ts'
import { integer, JSON_OPTION, withClickHouseOptions, withRedisOptions } from './options.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 10_000
const LETTERS_LIST = `as listed by \`${SLUICE} dead-letters list\``
const LETTER_IDS = `dead letter ids, ${LETTERS_LIST}`

const load = () => import('../dead-letters.ts')

export function addDeadLettersCommands(program: Command, context: Context): void {
  const letters = program
    .command('dead-letters')
    .description('list, retry and remove rows that ClickHouse rejected')
    .addHelpText(
      'after',
      examples(
        ['dead-letters list --project shop', 'those of one project'],
        ['dead-letters show 01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2', 'the row, and the reason'],
      ),
    )

  withRedisOptions(
    withClickHouseOptions(
      letters
        .command('list')
        .description('list dead letters, newest first')
        .addHelpText(
          'after',
          examples(
            ['dead-letters list', 'the newest 100, as a table'],
            ['dead-letters list --project shop --json', 'those of one project, for a program'],
          ),
        )
        .option('--project <id>', 'only those of this project')
        .option('--limit <count>', 'maximum number of dead letters', integer(1, LIMIT_MAX), LIMIT_DEFAULT)
        .option(...JSON_OPTION),
    ),
  ).action(async (options: ListDeadLettersOptions) => (await load()).listDeadLetters(options, context))

  withClickHouseOptions(
    letters
      .command('show')
      .description('print a dead letter: its row, and why ClickHouse rejected it')
      .addHelpText(
        'after',
        examples(['dead-letters show 01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2', 'print a dead letter as JSON']),
      )
      .argument('<id>', `dead letter id, ${LETTERS_LIST}`, uuid),
  ).action(async (id: string, options: ClickHouseFlags) =>
    (await load()).showDeadLetter(id, options, context),
  )

  withClickHouseOptions(
    letters
      .command('retry')
      .description('insert the rows again; rows that ClickHouse accepts are no longer dead letters')
      .addHelpText(
        'after',
        examples(
          ['dead-letters retry 01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2', 'one row'],
          ['dead-letters retry --all', 'all rows'],
        ),
      )
      .argument('[ids...]', LETTER_IDS, uuids)
      .option('--all', 'all dead letters'),
  ).action(async (ids: string[], options: DeadLetterChoiceOptions) =>
    (await load()).retryDeadLetters(ids, options, context),
  )

  withClickHouseOptions(
    letters
      .command('purge')
      .description('permanently remove dead letters')
      .addHelpText(
        'after',
        examples(
          ['dead-letters purge 01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2', 'one dead letter'],
          ['dead-letters purge --all', 'all dead letters'],
        ),
      )
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
