import { DeadLetterStore, type StoredDeadLetter } from '@sluice/clickhouse'
import { withClickHouse } from './clickhouse-session.ts'
import type { Context } from './context.ts'
import { CliError, UsageError } from './errors.ts'
import { requireProject } from './known-project.ts'
import { clickhouseAccess, type ClickHouseFlags, type RedisFlags } from './service-access.ts'
import { painter, table } from './terminal.ts'

export interface ListDeadLettersOptions extends ClickHouseFlags, RedisFlags {
  project?: string
  limit: number
  json?: true
}

export interface DeadLetterChoiceOptions extends ClickHouseFlags {
  all?: true
}

/** `sluice dead-letters list` */
export async function listDeadLetters(
  { project, limit, json, ...flags }: ListDeadLettersOptions,
  context: Context,
): Promise<void> {
  const letters = await withStore(flags, context, (store) => store.list(project, limit))
  if (letters.length === 0 && project !== undefined) {
    await requireProject(project, { clickhouse: await clickhouseAccess(flags, context), flags }, context)
  }
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

/** `sluice dead-letters show` */
export async function showDeadLetter(id: string, flags: ClickHouseFlags, context: Context): Promise<void> {
  const letter = await withStore(flags, context, (store) => findLetter(store, id))
  await context.stdout.write(`${JSON.stringify(letter, undefined, 2)}\n`)
}

/** `sluice dead-letters retry` */
export async function retryDeadLetters(
  ids: readonly string[],
  { all, ...flags }: DeadLetterChoiceOptions,
  context: Context,
): Promise<void> {
  requireChoice(ids, all)
  const outcomes = await withStore(flags, context, async (store) =>
    store.retry(all ? 'all' : await Promise.all(ids.map((id) => findLetter(store, id)))),
  )
  const rejected = outcomes.filter(({ rejection }) => rejection !== undefined)
  for (const { id, rejection = '' } of rejected)
    await context.stderr.write(`${id} was rejected again: ${rejection}\n`)
  const inserted = outcomes.length - rejected.length
  await context.stdout.write(`${inserted} inserted, ${rejected.length} rejected again.\n`)
  if (rejected.length > 0) context.exitCode = 1
}

/** `sluice dead-letters purge` */
export async function purgeDeadLetters(
  ids: readonly string[],
  { all, ...flags }: DeadLetterChoiceOptions,
  context: Context,
): Promise<void> {
  requireChoice(ids, all)
  const removed = await withStore(flags, context, (store) => store.purge(all ? 'all' : ids))
  await context.stdout.write(`${removed} removed.\n`)
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

/** Retrying or removing all dead letters must be requested explicitly. */
function requireChoice(ids: readonly string[], all: true | undefined): void {
  if (ids.length > 0 === (all === true))
    throw new UsageError('name the dead letters by their ids, or pass --all')
}
