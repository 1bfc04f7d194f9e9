import type { SupervisedProcess, Supervisor } from '@sluice/local'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { adaptExample, startDaemon } from './programs.ts'

/** From tools/collector.sh. */
export const COLLECTOR = 'otelcol-sluice'

export interface Collector {
  readonly process: SupervisedProcess
  /** Where it receives OTLP over HTTP, if the example has that. */
  readonly url: string
}

interface CollectorOptions {
  /** The path of the configuration in `examples`. */
  readonly example: string
  /** What to replace in it, in addition to addresses and folders. */
  readonly replacements?: Readonly<Record<string, string>>
  readonly environment?: Readonly<Record<string, string>>
}

/** Starts the Collector of the PATH with an example as its configuration. */
export async function startCollector(
  supervisor: Supervisor,
  { example, replacements = {}, environment = {} }: CollectorOptions,
): Promise<Collector> {
  const [grpcPort, telemetryPort] = [await supervisor.ports.free(), await supervisor.ports.free()]
  // Its metrics have a fixed port by default.
  const telemetry = `yaml:service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: ${telemetryPort}}}}}]`
  const { process, port } = await startDaemon(
    supervisor,
    COLLECTOR,
    (folder, httpPort) => {
      const file = join(folder, 'config.yaml')
      const text = adaptExample(example, { ...replacements, '/var/lib/otelcol': folder })
        .replaceAll('127.0.0.1:4317', `127.0.0.1:${grpcPort}`)
        .replaceAll('127.0.0.1:4318', `127.0.0.1:${httpPort}`)
      writeFileSync(file, text)
      return ['--config', file, '--config', telemetry]
    },
    async (_port, signal) => {
      const response = await fetch(`http://127.0.0.1:${telemetryPort}/metrics`, { signal })
      await response.body?.cancel()
      if (!response.ok) throw new Error(`metrics: ${response.status}`)
    },
    environment,
  )
  return { process, url: `http://127.0.0.1:${port}` }
}
