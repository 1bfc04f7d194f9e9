import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** The memory of all objects that are still reachable. */
export function heapBytes(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}
