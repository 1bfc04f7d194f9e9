// Prints how many files the primary process of a cluster adopts from a worker that is disconnected, but still lives. Argument: the directory.
import cluster from 'node:cluster'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ProcessFolder } from '../../src/spool/process-folder.ts'

function fail(error: unknown): never {
  throw error
}

const [directory = ''] = process.argv.slice(2)

if (cluster.isPrimary) {
  const worker = cluster.fork()
  await once(worker, 'message')
  worker.disconnect()
  await once(worker, 'disconnect')
  const folder = await ProcessFolder.create(directory)
  const adopted = await folder.adopt(() => true, fail)
  process.stdout.write(`adopted ${adopted.length} files\n`)
  await folder.close()
  worker.process.kill('SIGKILL')
} else {
  const folder = await ProcessFolder.create(directory)
  await writeFile(join(folder.path, '1.batch'), '')
  process.send?.('ready')
  setInterval(() => undefined, 1_000)
}
