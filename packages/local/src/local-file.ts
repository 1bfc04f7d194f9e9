import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Installation, InstallationOptions } from './installation.ts'

/** The content of `local.json` in the data directory. Scripts and the CLI read addresses and credentials from it. */
export type LocalFile = Pick<
  Installation,
  'apiUrl' | 'apiKey' | 'projectId' | 'redisUrl' | 'clickhouse' | 'opsUrls'
>

const nameOf = (dataDir: string): string => join(dataDir, 'local.json')

/** Writes `local.json`, readable by its owner only. Readers see the old or the new content, never a partial one. */
export function writeLocalFile(dataDir: string, local: LocalFile): void {
  const { apiUrl, apiKey, projectId, redisUrl, clickhouse, opsUrls } = local
  const content: LocalFile = { apiUrl, apiKey, projectId, redisUrl, clickhouse, opsUrls }
  const path = nameOf(dataDir)
  writeFileSync(`${path}.new`, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Reads the file of the latest start. @returns undefined if there is none, or if it is invalid */
export function readLocalFile(dataDir: string): LocalFile | undefined {
  if (!existsSync(nameOf(dataDir))) return undefined
  try {
    const content = JSON.parse(readFileSync(nameOf(dataDir), 'utf8')) as LocalFile
    optionsFrom(content)
    return content
  } catch {
    return undefined
  }
}

/** Options with the ports, passwords and key of an earlier start, so that saved addresses stay valid. */
export function optionsFrom(earlier: LocalFile): Pick<
  InstallationOptions,
  'redis' | 'clickhouse' | 'apiKey'
> & {
  readonly opsPorts: { readonly api: number; readonly worker: number }
} {
  const { username, password, database, url } = earlier.clickhouse
  return {
    apiKey: earlier.apiKey,
    redis: { port: portOf(earlier.redisUrl), password: new URL(earlier.redisUrl).password },
    clickhouse: { port: portOf(url), username, password, database },
    opsPorts: { api: portOf(earlier.opsUrls.api), worker: portOf(earlier.opsUrls.worker) },
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}
