import { migrate, migrationsFolder, readMigrations } from '@sluice/clickhouse'
import type { Command } from 'commander'
import { toCliError } from '../clickhouse-session.ts'
import type { Context } from '../context.ts'
import { withConnections, withExamples } from '../options.ts'
import { clickhouseAccess, type Flags } from '../service-access.ts'
import { redactUrl } from '../terminal.ts'

export function define(command: Command, context: Context): void {
  withExamples(
    withConnections(command, 'clickhouse'),
    ['migrate', 'the database of `npm start`, or of CLICKHOUSE_URL'],
    ['migrate --clickhouse-url http://clickhouse:8123', 'another server'],
  ).action(async (flags: Flags) => {
    const access = await clickhouseAccess(flags, context)
    const migrations = await readMigrations(migrationsFolder)
    const applied = await migrate(access, migrations).catch((error: unknown) => {
      throw toCliError(error, access)
    })
    for (const { version, name } of applied) await context.stdout.write(`Applied ${version} (${name}).\n`)
    await context.stdout.write(
      `The database ${access.database} at ${redactUrl(access.url)} is up to date: ` +
        `${migrations.length} migrations, ${applied.length} of them applied now.\n`,
    )
  })
}
