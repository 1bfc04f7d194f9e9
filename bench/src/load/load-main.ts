// The load generator's process: told what to do over the channel to the process that forked it, and gone with it.
import { LoadRun } from './load-run.ts'
import type { Answer, Command } from './protocol.ts'
import { RequestPool } from './request-pool.ts'

let target: { readonly url: URL; readonly pool: RequestPool } | undefined

const answer = (message: Answer): void => {
  process.send?.(message)
}

async function act(command: Command): Promise<Answer> {
  if (command.kind === 'prepare') {
    const pool = await RequestPool.build(command)
    target = { url: new URL(command.url), pool }
    return { kind: 'prepared', facts: pool.facts }
  }
  if (target === undefined) throw new Error('there are no requests yet')
  const run = new LoadRun(target.url, target.pool, (progress) => answer({ kind: 'progress', progress }))
  return { kind: 'finished', result: await run.run(command) }
}

process.on('message', (command: Command) => {
  act(command).then(answer, (error: unknown) => {
    answer({ kind: 'failed', message: error instanceof Error ? error.message : String(error) })
  })
})
process.on('disconnect', () => process.exit())
// A Ctrl-C of the terminal is for the process that forked this one.
process.on('SIGINT', () => undefined)
