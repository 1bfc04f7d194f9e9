import { createRequire } from 'node:module'
import { availableParallelism, cpus, totalmem } from 'node:os'

/** What the figures were measured on. */
export interface Machine {
  readonly cores: number
  readonly cpu: string
  readonly memoryGb: number
  readonly platform: string
}

export function describeMachine(): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    memoryGb: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
  }
}

/** What the figures were measured with; a server's version is known once it has run. */
export interface Versions {
  readonly node: string
  readonly bullmq: string
  readonly redis?: string
  readonly clickhouse?: string
}

export function describeVersions(): Versions {
  const { version: bullmq } = createRequire(import.meta.url)('bullmq/package.json') as { version: string }
  return { node: process.version, bullmq }
}
