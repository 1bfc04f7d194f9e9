import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouseAccess } from '@sluice/clickhouse'
import type { Context } from './context.ts'
import { CliError } from './errors.ts'

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
    if (error instanceof Error && 'syscall' in error)
      throw new CliError(`${path} cannot be read (${error.message}); SLUICE_DATA_DIR names its folder`)
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new CliError(`${path} is not a valid JSON object; \`npm start\` writes a new one`)
}
