import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouseAccess } from '@sluice/clickhouse'
import type { Context } from './context.ts'
import { CliError, describeReadError } from './errors.ts'

/** The content of `local.json`: how to reach the services that `npm start` runs. */
export interface LocalServices {
  readonly apiUrl?: string
  readonly apiKey?: string
  readonly projectId?: string
  readonly redisUrl?: string
  readonly clickhouse?: Partial<ClickHouseAccess>
}

/** @returns an empty object where `npm start` never ran */
export async function readLocalServices({
  dataDirectory,
}: Pick<Context, 'dataDirectory'>): Promise<LocalServices> {
  const path = join(dataDirectory, 'local.json')
  try {
    const services: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (typeof services === 'object' && services !== null) return services
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
    const reason =
      describeReadError(error) ?? (error instanceof Error && 'syscall' in error ? error.message : undefined)
    if (reason !== undefined) {
      throw new CliError(`cannot read ${path}: ${reason}; SLUICE_DATA_DIR selects another folder`, {
        cause: error,
      })
    }
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new CliError(`${path} is not a valid JSON object; \`npm start\` writes a new one`)
}
