import { statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** ClickHouse reserves space before it writes: an insert of a full batch takes some tens of megabytes. */
const FREE_BYTES_MIN = 64 * 1024 * 1024

/** Of the disk with a folder. A folder that does not exist yet will be on the disk of its parent. */
function freeBytesOf(folder: string): number {
  try {
    const { blocks, bavail, bsize } = statfsSync(folder)
    // Such as /proc, which has no disk.
    return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize
  } catch {
    return dirname(folder) === folder ? Number.POSITIVE_INFINITY : freeBytesOf(dirname(folder))
  }
}

/** Says which disk of the data directory is full: each store may have its own. Undefined if none is. */
export function describeFullDisk(dataDir: string, freeBytes = freeBytesOf): string | undefined {
  for (const folder of [dataDir, join(dataDir, 'clickhouse'), join(dataDir, 'redis')]) {
    const bytes = freeBytes(folder)
    if (bytes < FREE_BYTES_MIN)
      return (
        `The disk of ${folder} is full (${Math.floor(bytes / 1e6)} MB free). ` +
        'Free some space, or set SLUICE_DATA_DIR to a folder on another disk.'
      )
  }
  return undefined
}
