import { DeadLetterStore, type StoredDeadLetter } from '@sluice/clickhouse'
import { lateInserts, queueNames } from '@sluice/queue'
import type { Command } from 'commander'
import { withClickHouse } from '../clickhouse-session.ts'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { JSON_OPTION, LIMIT_OPTION, SLUICE, withChoice, withConnections, withExamples } from '../options.ts'
import { withRedis } from '../redis-session.ts'
import { clickhouseAccess, redisAccess } from '../service-access.ts'
import { formatCount, type Listing, printList } from '../terminal.ts'

export function define(letters: Command, context: Context): void {
  const { stdout, stderr } = context
  async function withStore<Result>(task: (store: DeadLetterStore) => Promise<Result>): Promise<Result> {
    const access = await clickhouseAccess(letters.opts(), context)
    return withClickHouse(access, (client) => task(new DeadLetterStore(client)))
  }

  withExamples(
    withConnections(letters, 'clickhouse', 'redis'),
    ['dead-letters list --project shop --json', 'those of one project, for a program'],
    ['dead-letters retry 01a1fb4e-a9e7-7c93-8c9d-f8683da79aa2', 'one row'],
    ['dead-letters purge --all --yes', 'all; without --yes, shows how many'],
  )

  letters
    .command('list')
    .description('list dead letters, newest first')
    .option('--project <id>', 'only those of this project')
    .option(...LIMIT_OPTION)
    .option(...JSON_OPTION)
    .action(async ({ project, limit, json }: { project?: string; limit: number; json?: true }) => {
      await printList(await withStore((store) => store.list(project, limit)), listing, json, context)
    })

  letters
    .command('show')
    .description('print a dead letter: its row, and why ClickHouse rejected it')
    .argument('<id>', `id, as listed by \`${SLUICE} dead-letters list\``)
    .action(async (id: string) => {
      const letter = await withStore((store) => findLetter(store, id))
      await stdout.write(`${JSON.stringify(letter, undefined, 2)}\n`)
    })

  const retry = letters
    .command('retry')
    .description('insert the rows again; rows that ClickHouse accepts are no longer dead letters')
  withChoice(retry, async (choice) => {
    const access = await redisAccess(letters.opts(), context)
    const outcomes = await withRedis(access, (_redis, durable) =>
      withStore(async (store) => {
        const found = choice === 'all' ? choice : await Promise.all(choice.map((id) => findLetter(store, id)))
        return store.retry(found, lateInserts(durable, queueNames(access.prefix)))
      }),
    )
    const rejected = outcomes.filter(({ rejection }) => rejection !== undefined)
    for (const { id, rejection = '' } of rejected)
      await stderr.write(`${id} was rejected again: ${rejection}\n`)
    const inserted = outcomes.length - rejected.length
    await stdout.write(`${inserted} inserted, ${rejected.length} rejected again.\n`)
    if (rejected.length > 0) context.exitCode = 1
  })

  const purge = letters.command('purge').description('permanently remove dead letters')
  withChoice(
    purge,
    async (choice) => {
      await stdout.write(`${await withStore((store) => store.purge(choice))} removed.\n`)
    },
    async () => `${formatCount((await withStore((store) => store.count())).total)} dead letters`,
  )
}

const listing: Listing<StoredDeadLetter> = {
  headings: ['ID', 'FAILED', 'PROJECT', 'CODE'],
  cells: ({ id, failedAt, projectId, code }) => [id, failedAt, projectId, code],
  empty: 'There are no dead letters.',
}

async function findLetter(store: DeadLetterStore, id: string): Promise<StoredDeadLetter> {
  const letter = await store.find(id)
  if (letter === undefined) throw new CliError(`there is no dead letter ${id}`)
  return letter
}
