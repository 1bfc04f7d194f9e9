export { DiskSpool, type DiskSpoolOptions, type DiskSpoolPlatform } from './disk-spool.ts'
export type { Files } from './files.ts'
