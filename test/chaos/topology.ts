/** What runs, and who talks to whom: all that a schedule of faults has to know. */
export interface Topology {
  readonly processes: readonly ProcessPlace[]
  readonly links: readonly LinkPlace[]
}

export type ProcessRole = 'api' | 'worker' | 'redis' | 'clickhouse'

export interface ProcessPlace {
  readonly name: string
  readonly role: ProcessRole
}

export interface LinkPlace {
  readonly name: string
  readonly from: ProcessRole | 'clients'
  readonly to: ProcessRole
}

/** @param apis how many API processes there are; @param workers how many workers */
export function buildTopology(apis: number, workers: number): Topology {
  const apiNames = names('api', apis)
  const workerNames = names('worker', workers)
  return {
    processes: [
      ...apiNames.map((name): ProcessPlace => ({ name, role: 'api' })),
      ...workerNames.map((name): ProcessPlace => ({ name, role: 'worker' })),
      { name: 'redis', role: 'redis' },
      { name: 'clickhouse', role: 'clickhouse' },
    ],
    links: [
      ...apiNames.map((name): LinkPlace => ({ name: linkName('clients', name), from: 'clients', to: 'api' })),
      ...apiNames.map((name): LinkPlace => ({ name: linkName(name, 'redis'), from: 'api', to: 'redis' })),
      ...workerNames.flatMap((name): LinkPlace[] => [
        { name: linkName(name, 'redis'), from: 'worker', to: 'redis' },
        { name: linkName(name, 'clickhouse'), from: 'worker', to: 'clickhouse' },
      ]),
    ],
  }
}

/** The name of the link between two processes, the one that connects first. */
export function linkName(from: string, to: string): string {
  return `${from}>${to}`
}

function names(role: ProcessRole, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${role}-${index + 1}`)
}
