import type { Dependencies } from './dependencies.ts'
import type { ProcessLogger } from './logger.ts'
import type { Metrics } from './metrics.ts'
import type { Readiness } from './ops-server.ts'

/** What every process shows of itself. */
export interface ProcessState {
  readonly readiness: () => Readiness
  readonly dependencies: Pick<Dependencies, 'status'>
  readonly logger: Pick<ProcessLogger, 'logLinesDropped'>
}

/** Exports the state of a process. docs/metrics.md describes each metric. */
export function exportProcess(metrics: Metrics, { readiness, dependencies, logger }: ProcessState): void {
  metrics.gauge({ name: 'sluice_ready', help: '1 if /readyz answers 200.' }, () => Number(readiness().ready))
  metrics.gauge(
    { name: 'sluice_dependency_up', help: '1 if the dependency works.', labels: ['dependency'] },
    () => dependencies.status.map(({ name, state }) => [[name], Number(state === 'up')]),
  )
  metrics.counter(
    { name: 'sluice_log_lines_dropped_total', help: 'Repeated log lines that were not written.' },
    () => logger.logLinesDropped,
  )
}
