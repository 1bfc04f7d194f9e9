import { type Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import { UsageError } from '../errors.ts'
import { painter, table } from '../terminal.ts'
import { type ClickHouseFlags, integer, JSON_OPTION, withClickHouseOptions } from './options.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 10_000

export function addDeadLettersCommands(program: Command, context: Context): void {
  const letters = program
    .command('dead-letters')
    .description('rows that ClickHouse refused for themselves, and were set aside')

  withClickHouseOptions(letters.command('list'))
    .description('show them, newest first')
    .option('--project <id>', 'only of this project')
    .option('--limit <count>', 'at most as many', integer(1, LIMIT_MAX), LIMIT_DEFAULT)
    .option(...JSON_OPTION)
    .action((options: ListOptions) => list(options, context))

  withClickHouseOptions(letters.command('show'))
    .description('show one whole: why it was refused, and its text')
    .argument('<id>', 'as sluice dead-letters list shows it', uuid)
    .action((id: string, options: ClickHouseFlags) => show(id, options, context))

  withClickHouseOptions(letters.command('retry'))
    .description('insert them again; those that go in are dead letters no more')
    .argument('[ids...]', 'as sluice dead-letters list shows them', uuids)
    .option('--all', 'all there are')
    .action((ids: string[], options: ChoiceOptions) => retry(ids, options, context))

  withClickHouseOptions(letters.command('purge'))
    .description('remove them for ever')
    .argument('[ids...]', 'as sluice dead-letters list shows them', uuids)
    .option('--all', 'all there are')
    .action((ids: string[], options: ChoiceOptions) => purge(ids, options, context))
}

interface ListOptions extends ClickHouseFlags {
  project?: string
  limit: number
  json?: true
}

interface ChoiceOptions extends ClickHouseFlags {
  all?: true
}

async function list({ project, limit, json, ...flags }: ListOptions, context: Context): Promise<void> {
  const letters = await withLetters(flags, context, (store) => store.list(project, limit))
  if (json) {
    await context.stdout.write(letters.map((letter) => `${JSON.stringify(letter)}\n`).join(''))
  } else if (letters.length === 0) {
    await context.stderr.write('There are no dead letters.\n')
  } else {
    const rows = letters.map(({ id, failedAt, projectId, code }) => [id, failedAt, projectId, code])
    const headings = ['ID', 'FAILED', 'PROJECT', 'CODE']
    await context.stdout.write(table([headings, ...rows], painter(context.stdout.colours)))
  }
}

async function show(id: string, flags: ClickHouseFlags, context: Context): Promise<void> {
  const letter = await withLetters(flags, context, (store) => store.find(id))
  await context.stdout.write(`${JSON.stringify(letter, undefined, 2)}\n`)
}

async function retry(
  ids: readonly string[],
  { all, ...flags }: ChoiceOptions,
  context: Context,
): Promise<void> {
  requireChoice(ids, all)
  const outcomes = await withLetters(flags, context, (store) => store.retry(all ? 'all' : ids))
  const refused = outcomes.filter(({ refusal }) => refusal !== undefined)
  for (const { id, refusal = '' } of refused)
    await context.stderr.write(`${id} is refused again: ${refusal}\n`)
  await context.stdout.write(
    `${outcomes.length - refused.length} inserted, ${refused.length} refused again.\n`,
  )
  if (refused.length > 0) context.exitCode = 1
}

async function purge(
  ids: readonly string[],
  { all, ...flags }: ChoiceOptions,
  context: Context,
): Promise<void> {
  requireChoice(ids, all)
  const removed = await withLetters(flags, context, (store) => store.purge(all ? 'all' : ids))
  await context.stdout.write(`${removed} removed.\n`)
}

async function withLetters<Result>(
  flags: ClickHouseFlags,
  context: Context,
  task: (store: import('../dead-letters/dead-letter-store.ts').DeadLetterStore) => Promise<Result>,
): Promise<Result> {
  const [{ clickhouseAccess }, { withClickHouse }, { DeadLetterStore }] = await Promise.all([
    import('../connections.ts'),
    import('../clickhouse-session.ts'),
    import('../dead-letters/dead-letter-store.ts'),
  ])
  const access = await clickhouseAccess(flags, context)
  return withClickHouse(access, (client) => task(new DeadLetterStore(client)))
}

/** Removing or inserting all must be asked for by its name. */
function requireChoice(ids: readonly string[], all: true | undefined): void {
  if (ids.length > 0 === (all === true))
    throw new UsageError('name the dead letters by their ids, or say --all')
}

function uuid(text: string): string {
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text
  throw new InvalidArgumentError('It takes the id of a dead letter.')
}

function uuids(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, uuid(text)]
}
