import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Stack, StackOptions } from './stack.ts'

/** What `local.json` in the data directory says, so that scripts find what `npm start` runs. */
export type LocalFile = Pick<Stack, 'apiUrl' | 'apiKey' | 'projectId' | 'redisUrl' | 'clickhouse' | 'opsUrls'>

const nameOf = (dataDir: string): string => join(dataDir, 'local.json')

/** Writes `local.json`, for its owner's eyes only. Readers see the old one or the new one, never a half. */
export function writeLocalFile(dataDir: string, stack: LocalFile): void {
  const { apiUrl, apiKey, projectId, redisUrl, clickhouse, opsUrls } = stack
  const content: LocalFile = { apiUrl, apiKey, projectId, redisUrl, clickhouse, opsUrls }
  const path = nameOf(dataDir)
  writeFileSync(`${path}.new`, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** What the latest start on a data directory wrote; undefined if there was none, or somebody broke the file. */
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

/** Starts with the ports, passwords and key of an earlier start, so that addresses which people noted stay good. */
export function optionsFrom(earlier: LocalFile): Pick<StackOptions, 'redis' | 'clickhouse' | 'apiKey'> & {
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
