import { keepText, parseJsonExactly } from '@sluice/rows/exact-json'
import { type Api, type Completeness, type Parameters, Problem, wait } from './api.ts'
import type { Entry } from './entry.ts'

interface TailEvent extends Completeness {
  readonly id: string | undefined
  /** Oldest first. */
  readonly entries?: readonly Entry[]
  /** How many entries the server left out, since they were too many. */
  readonly count?: number
}

/** The server sends an event each second. */
const SILENCE_MS_MAX = 45_000

/** The whole events of a stream, as the query API writes them: a line for each field. */
async function* eventsOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<TailEvent> {
  const text = stream.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
  // Safari cannot iterate over a stream.
  const reader = text.getReader()
  for (let rest = ''; ;) {
    const { done, value } = await reader.read()
    if (done) return
    const events = `${rest}${value}`.split('\n\n')
    rest = events.pop() ?? ''
    for (const event of events) {
      const [, id] = /^id: (.*)$/m.exec(event) ?? []
      const [, data = '{}'] = /^data: (.*)$/m.exec(event) ?? []
      yield { ...(parseJsonExactly(data, keepText) as Omit<TailEvent, 'id'>), id }
    }
  }
}

/**
 * Follows the matching entries until it is aborted. It reconnects, and continues after the last event that it has.
 *
 * @param connection gets the problem when the connection is lost, and undefined when it is open
 */
export async function follow(
  api: Pick<Api, 'tail'>,
  parameters: Parameters,
  signal: AbortSignal,
  received: (event: TailEvent) => void,
  connection: (problem: Problem | undefined) => void,
): Promise<void> {
  let lastId: string | undefined
  for (let failures = 0; !signal.aborted; failures += 1) {
    const ended = new AbortController()
    let timer = setTimeout(() => ended.abort(), SILENCE_MS_MAX)
    try {
      const stream = await api.tail(parameters, lastId, AbortSignal.any([signal, ended.signal]))
      connection(undefined)
      for await (const event of eventsOf(stream)) {
        if (signal.aborted) return
        failures = 0
        clearTimeout(timer)
        timer = setTimeout(() => ended.abort(), SILENCE_MS_MAX)
        received(event)
        lastId = event.id ?? lastId
      }
      throw new Problem(0, { title: 'The server closed the connection' })
    } catch (error) {
      if (signal.aborted) return
      const problem = Problem.of(error, 'The connection broke')
      connection(problem)
      // A query or key that is refused stays refused.
      if (problem.isFinal) return
      await wait(problem.retryMs(failures), signal)
    } finally {
      clearTimeout(timer)
      ended.abort()
    }
  }
}
