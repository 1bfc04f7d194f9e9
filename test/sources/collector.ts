import type { SupervisedProcess, Supervisor } from '@sluice/local'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { adaptExample } from './examples.ts'

/** A Collector with an example as its configuration. */
export interface Collector {
  readonly process: SupervisedProcess
  /** Where it receives OTLP over HTTP, if the example has that. */
  readonly url: string
}

export interface CollectorOptions {
  /** The path of the configuration in `examples`. */
  readonly example: string
  /** What to replace in it, in addition to addresses and folders. */
  readonly replacements?: Readonly<Record<string, string>>
  readonly environment?: Readonly<Record<string, string>>
}

export const COLLECTOR = 'otelcol-sluice'

const READY_DEADLINE_MS = 20_000

/** Starts the Collector of the PATH: see tools/collector.sh. */
export async function startCollector(
  supervisor: Supervisor,
  { example, replacements = {}, environment = {} }: CollectorOptions,
): Promise<Collector> {
  const [grpcPort, telemetryPort] = [await supervisor.ports.free(), await supervisor.ports.free()]
  return supervisor.ports.startOn(undefined, async (port) => {
    const folder = join(supervisor.dataDir, `collector-${port}`)
    mkdirSync(folder)
    const file = join(folder, 'config.yaml')
    const url = `http://127.0.0.1:${port}`
    const text = adaptExample(example, { ...replacements, '/var/lib/otelcol': folder })
      .replaceAll('127.0.0.1:4317', `127.0.0.1:${grpcPort}`)
      .replaceAll('127.0.0.1:4318', `127.0.0.1:${port}`)
    writeFileSync(file, text)
    const process = await supervisor.start({
      // Stopped together with the API.
      role: 'api',
      name: `collector-${port}`,
      command: COLLECTOR,
      args: [
        '--config',
        file,
        // Its metrics have a fixed port by default.
        '--config',
        `yaml:service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: ${telemetryPort}}}}}]`,
      ],
      cwd: folder,
      environment: { PATH: globalThis.process.env['PATH'] ?? '', ...environment },
      readyDeadlineMs: READY_DEADLINE_MS,
      isReady: async (signal) => {
        const response = await fetch(`http://127.0.0.1:${telemetryPort}/metrics`, { signal })
        await response.body?.cancel()
        return response.ok
      },
    })
    return { process, url }
  })
}
