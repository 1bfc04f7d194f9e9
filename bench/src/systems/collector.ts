import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { command } from '@sluice/harness/clickhouse'
import { logsTable } from '@sluice/clickhouse'
import { startServices, type Supervisor } from '@sluice/local'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const folder = join(root, 'node_modules/.cache/collector')

/**
 * An OpenTelemetry Collector that inserts what it receives, without Redis and without a worker. Its table is the exporter's.
 *
 * `collector-persistent` acknowledges when its disk has a request. `collector` loses what is in its memory when it crashes.
 *
 * @throws if there is no Go to compile it
 */
export async function startCollector(supervisor: Supervisor, name: 'collector' | 'collector-persistent') {
  execFileSync(join(root, 'tools/collector.sh'), [folder], { stdio: ['ignore', 'inherit', 'inherit'] })
  const { clickhouse, processes } = await startServices({ supervisor })
  const { url, username, password, database } = clickhouse
  const directory = join(supervisor.dataDir, 'collector')
  mkdirSync(directory)
  const configFile = join(directory, 'config.json')
  return supervisor.ports.startOn(undefined, async (port) => {
    const config = {
      receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
      extensions: { file_storage: { directory, fsync: true } },
      exporters: {
        clickhouse: {
          endpoint: url,
          username,
          password,
          database,
          logs_table_name: logsTable,
          sending_queue: {
            // Otherwise it rejects requests whenever an insert is slow.
            block_on_overflow: true,
            // What its documentation recommends, instead of a processor, whose batches a crash loses.
            batch: { min_size: 5_000, flush_timeout: '1s' },
            ...(name === 'collector-persistent' && { storage: 'file_storage' }),
          },
        },
      },
      service: {
        extensions: ['file_storage'],
        pipelines: { logs: { receivers: ['otlp'], exporters: ['clickhouse'] } },
        telemetry: { metrics: { level: 'none' } },
      },
    }
    writeFileSync(configFile, JSON.stringify(config), { mode: 0o600 })
    const logsUrl = `http://127.0.0.1:${port}/v1/logs`
    const collector = await supervisor.start({
      role: 'api',
      name: 'collector',
      command: join(folder, 'otelcol-sluice'),
      args: ['--config', configFile],
      cwd: directory,
      environment: {},
      isReady: async (signal) => {
        const headers = { 'content-type': 'application/json' }
        return (await fetch(logsUrl, { method: 'POST', headers, body: '{}', signal })).ok
      },
    })
    // What the queries of the bench name.
    const columns = [
      "project_id String ALIAS 'bench'",
      'message String ALIAS Body',
      'timestamp DateTime64(9) ALIAS Timestamp',
    ]
    await command(
      clickhouse,
      `ALTER TABLE ${logsTable} ${columns.map((column) => `ADD COLUMN ${column}`).join(', ')}`,
    )
    const parts = { api: collector, clickhouse: processes.clickhouse }
    return { url: logsUrl, apiKey: 'none', projectId: 'bench', clickhouse, processes: parts }
  })
}
