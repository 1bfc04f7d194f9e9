// Prints whether the primary process of a cluster takes the lock of a worker for abandoned that is disconnected, but still lives. Argument: the
// directory.
import cluster from 'node:cluster'
import { once } from 'node:events'
import { systemDisk } from '../../src/spool/disk.ts'

const [directory = ''] = process.argv.slice(2)
const disk = systemDisk(false)

if (cluster.isPrimary) {
  const worker = cluster.fork()
  const [id] = (await once(worker, 'message')) as [string]
  worker.disconnect()
  await once(worker, 'disconnect')
  process.stdout.write(`abandoned: ${await disk.isAbandoned(directory, id)}\n`)
  worker.process.kill('SIGKILL')
} else {
  process.send?.((await disk.lock(directory)).id)
  setInterval(() => undefined, 1_000)
}
