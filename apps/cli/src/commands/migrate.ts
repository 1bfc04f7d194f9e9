import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { type ClickHouseFlags, withClickHouseOptions } from './options.ts'

export function addMigrateCommand(program: Command, context: Context): void {
  withClickHouseOptions(program.command('migrate'))
    .description("make ClickHouse's database and tables, or bring them up to date")
    .action((options: ClickHouseFlags) => runMigrations(options, context))
}

async function runMigrations(options: ClickHouseFlags, context: Context): Promise<void> {
  const [{ clickhouseAccess, shownUrl }, { clickhouseProblem }, runtime, schema] = await Promise.all([
    import('../connections.ts'),
    import('../clickhouse-session.ts'),
    import('@sluice/runtime'),
    import('@sluice/schema'),
  ])
  const access = await clickhouseAccess(options, context)
  const migrations = await runtime.readMigrations(schema.migrationsFolder)
  const applied = await runtime.migrate(access, migrations).catch((error: unknown) => {
    throw error instanceof runtime.MigrationError
      ? new CliError(error.message)
      : clickhouseProblem(error, access)
  })
  for (const { version, name } of applied) await context.stdout.write(`Applied ${version} (${name}).\n`)
  await context.stdout.write(
    `The database ${access.database} at ${shownUrl(access.url)} is up to date: ` +
      `${migrations.length} migrations, ${applied.length} of them applied now.\n`,
  )
}
