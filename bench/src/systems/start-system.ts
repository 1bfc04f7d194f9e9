import { startDirect } from './direct.ts'
import { startJobPerEntry } from './job-per-entry.ts'
import { startSluice } from './sluice.ts'
import type { System, SystemName, SystemOptions } from './system.ts'

const starters: Readonly<Record<SystemName, (options: SystemOptions) => Promise<System>>> = {
  sluice: startSluice,
  'job-per-entry': startJobPerEntry,
  direct: startDirect,
}

export function startSystem(name: SystemName, options: SystemOptions): Promise<System> {
  return starters[name](options)
}
