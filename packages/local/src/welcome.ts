import type { LocalFile } from './local-file.ts'

const exampleEntry = { level: 'info', message: 'Hello, Sluice', service: 'curl', metadata: { user: 42 } }

/** Posts an entry, when it is pasted into a shell. */
export function curlCommand({ apiUrl, apiKey }: LocalFile): string {
  return (
    `curl -sS ${apiUrl}/v1/logs -H 'Authorization: Bearer ${apiKey}' ` +
    `-H 'Content-Type: application/json' -d '${JSON.stringify(exampleEntry)}'`
  )
}

/** ClickHouse's page for queries, signed in, with a query that runs at once. */
export function playUrl({ clickhouse, projectId }: LocalFile): string {
  const query =
    `SELECT timestamp, level, service, message, metadata\nFROM ${clickhouse.database}.logs\n` +
    `WHERE project_id = '${projectId}'\nORDER BY timestamp DESC\nLIMIT 100`
  const url = new URL('/play', clickhouse.url)
  url.searchParams.set('user', clickhouse.username)
  url.searchParams.set('password', clickhouse.password)
  url.searchParams.set('run', '1')
  url.hash = Buffer.from(query).toString('base64')
  return url.href
}

/**
 * Shows the newest entries, when it is pasted into a shell in the project's folder.
 *
 * @param dataDir named where it is not the default one
 */
export function logsCommand({ projectId }: LocalFile, dataDir: string | undefined): string {
  const variable =
    dataDir === undefined ? '' : `SLUICE_DATA_DIR='${dataDir.replaceAll("'", String.raw`'\''`)}' `
  return `${variable}npx sluice logs --project ${projectId} --follow`
}

/** What `npm start` prints when all is ready. */
export function welcome(
  local: LocalFile,
  options: {
    readonly dataDir: string
    readonly isDefaultDataDir: boolean
    readonly heading: (text: string) => string
  },
): string {
  const { dataDir, heading } = options
  return `
${heading('Sluice is ready.')} Ctrl-C stops it; the data stays in ${dataDir}

  API      ${local.apiUrl}
  API key  ${local.apiKey}  (project ${local.projectId})

${heading('Send an entry')}

  ${curlCommand(local)}

${heading('See the logs')}

  ${logsCommand(local, options.isDefaultDataDir ? undefined : dataDir)}
  ${playUrl(local)}

`
}
