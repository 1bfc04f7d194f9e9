/** Clients that send their next request when they have the answer to the last one. */
export interface ClientLoad {
  readonly name: string
  readonly connections: number
  readonly entriesPerRequest: number
}

export const clientLoads: readonly ClientLoad[] = [
  { name: '1', connections: 1, entriesPerRequest: 1 },
  { name: '16', connections: 16, entriesPerRequest: 1 },
  { name: '64', connections: 64, entriesPerRequest: 1 },
  { name: '256', connections: 256, entriesPerRequest: 1 },
  { name: '64x100', connections: 64, entriesPerRequest: 100 },
]
