// The load generator's process. It executes commands from the process that forked it, and exits with that process.
import { LoadRun } from './load-run.ts'
import type { Command, LoadResult, PoolFacts, Reply } from './protocol.ts'
import { RequestPool } from './request-pool.ts'

let target: { readonly url: URL; readonly pool: RequestPool } | undefined

const reply = (message: Reply): void => {
  process.send?.(message)
}

async function execute(command: Command): Promise<PoolFacts | LoadResult> {
  if (command.kind === 'prepare') {
    const pool = RequestPool.build(command)
    target = { url: new URL(command.url), pool }
    return pool.facts
  }
  if (target === undefined) throw new Error('no requests were prepared')
  const run = new LoadRun(target.url, target.pool, (progress) => reply({ progress }))
  return run.run(command)
}

process.on('message', (command: Command) => {
  execute(command).then(
    (result) => reply({ result }),
    (error: unknown) => reply({ error: error instanceof Error ? error.message : String(error) }),
  )
})
process.on('disconnect', () => process.exit())
// The terminal sends Ctrl-C to this process, too. The process that forked this one handles it.
process.on('SIGINT', () => undefined)
