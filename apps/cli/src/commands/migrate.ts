import type { Command } from 'commander'
import type { Context } from '../context.ts'
import type { ClickHouseFlags } from '../service-access.ts'
import { examples } from './help.ts'
import { withClickHouseOptions } from './options.ts'

export function addMigrateCommand(program: Command, context: Context): void {
  withClickHouseOptions(
    program
      .command('migrate')
      .description("create ClickHouse's database and tables, or bring them up to date")
      .addHelpText(
        'after',
        examples(
          ['migrate', 'the database of `npm start`, or of CLICKHOUSE_URL'],
          ['migrate --clickhouse-url http://clickhouse:8123', 'another server'],
        ),
      ),
  ).action(async (options: ClickHouseFlags) => {
    const { migrateTables } = await import('../migrate-tables.ts')
    await migrateTables(options, context)
  })
}
