import { DeadLetterStore, type StoredDeadLetter } from '@sluice/clickhouse'
import { type Command, InvalidArgumentError } from 'commander'
import { withClickHouse } from '../clickhouse-session.ts'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import {
  integer,
  JSON_OPTION,
  requireChoice,
  SLUICE,
  withChoice,
  withClickHouseOptions,
  withExamples,
  withRedisOptions,
} from '../options.ts'
import { requireProject } from '../registry-session.ts'
import { clickhouseAccess, type ClickHouseFlags, type RedisFlags } from '../service-access.ts'
import { type Listing, printList } from '../terminal.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 10_000
const NAMES = 'dead letters'

export function define(letters: Command, context: Context): void {
  withExamples(
    letters,
    ['dead-letters list --project shop', 'those of one project'],
    ['dead-letters show 01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2', 'the row, and the reason'],
  )

  withExamples(
    withRedisOptions(
      withClickHouseOptions(
        letters
          .command('list')
          .description('list dead letters, newest first')
          .option('--project <id>', 'only those of this project')
          .option('--limit <count>', 'maximum number of dead letters', integer(1, LIMIT_MAX), LIMIT_DEFAULT)
          .option(...JSON_OPTION),
      ),
    ),
    ['dead-letters list', 'the newest 100, as a table'],
    ['dead-letters list --project shop --json', 'those of one project, for a program'],
  ).action((options: ListOptions) => listLetters(options, context))

  withExamples(
    withClickHouseOptions(
      letters
        .command('show')
        .description('print a dead letter: its row, and why ClickHouse rejected it')
        .argument('<id>', `id, as listed by \`${SLUICE} dead-letters list\``, uuid),
    ),
    ['dead-letters show 01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2', 'print a dead letter as JSON'],
  ).action(async (id: string, options: ClickHouseFlags) => {
    const letter = await withStore(options, context, (store) => findLetter(store, id))
    await context.stdout.write(`${JSON.stringify(letter, undefined, 2)}\n`)
  })

  withExamples(
    withClickHouseOptions(
      withChoice(
        letters
          .command('retry')
          .description('insert the rows again; rows that ClickHouse accepts are no longer dead letters'),
        NAMES,
        uuids,
      ),
    ),
    ['dead-letters retry 01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2', 'one row'],
    ['dead-letters retry --all', 'all rows'],
  ).action((ids: string[], options: ChoiceOptions) => retryLetters(ids, options, context))

  withExamples(
    withClickHouseOptions(
      withChoice(letters.command('purge').description('permanently remove dead letters'), NAMES, uuids),
    ),
    ['dead-letters purge 01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2', 'one dead letter'],
    ['dead-letters purge --all', 'all dead letters'],
  ).action(async (ids: string[], { all, ...flags }: ChoiceOptions) => {
    const choice = requireChoice(NAMES, ids, all)
    const removed = await withStore(flags, context, (store) => store.purge(choice))
    await context.stdout.write(`${removed} removed.\n`)
  })
}

function uuid(text: string): string {
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text
  throw new InvalidArgumentError('It must be the id of a dead letter.')
}

function uuids(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, uuid(text)]
}

interface ListOptions extends ClickHouseFlags, RedisFlags {
  project?: string
  limit: number
  json?: true
}

async function listLetters({ project, limit, json, ...flags }: ListOptions, context: Context): Promise<void> {
  const letters = await withStore(flags, context, (store) => store.list(project, limit))
  if (letters.length === 0 && project !== undefined) {
    await requireProject(project, { clickhouse: await clickhouseAccess(flags, context), flags }, context)
  }
  const listing: Listing<StoredDeadLetter> = {
    headings: ['ID', 'FAILED', 'PROJECT', 'CODE'],
    cells: ({ id, failedAt, projectId, code }) => [id, failedAt, projectId, code],
    empty: 'There are no dead letters.',
  }
  await printList(letters, listing, json, context)
}

interface ChoiceOptions extends ClickHouseFlags {
  all?: true
}

async function retryLetters(
  ids: readonly string[],
  { all, ...flags }: ChoiceOptions,
  context: Context,
): Promise<void> {
  const choice = requireChoice(NAMES, ids, all)
  const outcomes = await withStore(flags, context, async (store) =>
    store.retry(choice === 'all' ? choice : await Promise.all(choice.map((id) => findLetter(store, id)))),
  )
  const rejected = outcomes.filter(({ rejection }) => rejection !== undefined)
  for (const { id, rejection = '' } of rejected)
    await context.stderr.write(`${id} was rejected again: ${rejection}\n`)
  const inserted = outcomes.length - rejected.length
  await context.stdout.write(`${inserted} inserted, ${rejected.length} rejected again.\n`)
  if (rejected.length > 0) context.exitCode = 1
}

async function findLetter(store: DeadLetterStore, id: string): Promise<StoredDeadLetter> {
  const letter = await store.find(id)
  if (letter === undefined) throw new CliError(`there is no dead letter ${id}`)
  return letter
}

async function withStore<Result>(
  flags: ClickHouseFlags,
  context: Context,
  task: (store: DeadLetterStore) => Promise<Result>,
): Promise<Result> {
  const access = await clickhouseAccess(flags, context)
  return withClickHouse(access, (client) => task(new DeadLetterStore(client)))
}
