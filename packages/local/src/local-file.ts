import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Installation } from './installation.ts'

/** The content of `local.json` in the data directory. Scripts and the CLI read addresses and credentials from it. */
export type LocalFile = Pick<
  Installation,
  'apiUrl' | 'apiKey' | 'projectId' | 'redisUrl' | 'clickhouse' | 'opsUrls'
>

/** Writes `local.json`, readable by its owner only. Readers see the old or the new content, never a partial one. */
export function writeLocalFile(dataDir: string, local: LocalFile): void {
  const { apiUrl, apiKey, projectId, redisUrl, clickhouse, opsUrls } = local
  const content: LocalFile = { apiUrl, apiKey, projectId, redisUrl, clickhouse, opsUrls }
  const path = join(dataDir, 'local.json')
  writeFileSync(`${path}.new`, `${JSON.stringify(content, undefined, 2)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** What a start takes over from the earlier one, so that saved addresses stay valid. Nothing if the file is missing or invalid. */
export function readEarlier(dataDir: string) {
  try {
    const local = JSON.parse(readFileSync(join(dataDir, 'local.json'), 'utf8')) as LocalFile
    return {
      apiUrl: local.apiUrl,
      project: { projectId: local.projectId, apiKey: local.apiKey },
      redis: { port: portOf(local.redisUrl), password: new URL(local.redisUrl).password },
      clickhouse: { port: portOf(local.clickhouse.url), password: local.clickhouse.password },
      opsPorts: { api: portOf(local.opsUrls.api), worker: portOf(local.opsUrls.worker) },
    }
  } catch {
    return {}
  }
}

const portOf = (url: string): number => Number(new URL(url).port)
