import { hash } from 'node:crypto'
import type { Readiness } from '../process.ts'
import type { RedisConnection } from './connection.ts'

/** Runs a Lua script. All of its keys must be in one hash slot. */
export type RedisScript<Answer> = (
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
) => Promise<Answer>

export interface ScriptOptions {
  readonly isBinary?: boolean
}

/** What steps run on whose effects must not be lost. */
export interface DurableRedis {
  /** How many replicas confirm each script. With 0, the disk of the primary has its effects, and nothing else needs to. */
  readonly replicas: number
  /** Whether scripts can run, as far as the process knows. */
  readonly readiness: Readiness
  /** Prepares a script. Its keys begin with a hash tag. Except for an error of Redis, a script that is rejected may have run. */
  script<Answer>(lua: string, options?: ScriptOptions): RedisScript<Answer>
  /**
   * Rejects all scripts because of a danger that their own replies do not show. Undefined ends this. Without replicas there is no danger.
   *
   * @param counted the addresses of the replicas that the danger was looked for with. If another one is connected, it may have taken the
   *   place of an absent replica that may be promoted, so scripts are rejected until it was counted. Undefined if they are not known
   */
  block(reason: string | undefined, counted?: ReadonlySet<string>): void
  /** Calls a function whenever a connection is lost: the next one may lead to another server. @returns how to stop */
  onClose(listener: () => void): () => void
  /** Resolves when all of its connections are open. @throws an `AbortError` if the signal is aborted */
  ready(signal: AbortSignal): Promise<void>
  /** Closes the connections that it has opened. */
  close(): void
}

/** Steps run on a connection that its owner opens and closes. The disk of the primary is enough. */
export function plainRedis(redis: RedisConnection): DurableRedis {
  return {
    replicas: 0,
    // The owner of the connection knows whether it is open.
    readiness: { ready: true, reasons: [] },
    script: (lua, options) => defineScript(redis, lua, options),
    block: () => undefined,
    onClose: (listener) => {
      redis.on('close', listener)
      return () => void redis.off('close', listener)
    },
    ready: async () => undefined,
    close: () => undefined,
  }
}

/** Pairs of what Redis returns as one list, such as fields and values. */
export function pairsOf(list: readonly string[]): (readonly [string, string])[] {
  return Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i] ?? '', list[2 * i + 1] ?? ''])
}

/** Calls `send` with the command for a Lua script. Its source is only sent to a server that does not have it. */
export function scriptCommand(lua: string) {
  const sha = hash('sha1', lua, 'hex')
  return async (send: (...command: [name: string, script: string]) => Promise<unknown>): Promise<unknown> => {
    try {
      return await send('EVALSHA', sha)
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return send('EVAL', lua)
    }
  }
}

/** Prepares a Lua script. */
export function defineScript<Answer>(
  redis: Pick<RedisConnection, 'call' | 'callBuffer'>,
  lua: string,
  { isBinary = false }: ScriptOptions = {},
): RedisScript<Answer> {
  const command = scriptCommand(lua)
  const call = isBinary ? 'callBuffer' : 'call'
  return async (keys, args) =>
    (await command((name, script) => redis[call](name, script, keys.length, ...keys, ...args))) as Answer
}

/**
 * Lua: permits the writes that follow it while Redis is above its `maxmemory`. Otherwise workers could not drain the queue, and
 * nothing else frees memory.
 *
 * For lack of memory, Redis rejects only the first write of a script, and never a deletion. This deletion finds nothing to delete, so
 * nothing goes to the disk or to replicas (Redis 6.2 persists an empty transaction). The alternative is the header
 * `#!lua flags=allow-oom`, which Redis 6.2 does not know. The deletion also makes a run without any other write fail on a replica
 * (`READONLY`) and without enough replicas (`NOREPLICAS`), so that an idle worker learns of both.
 */
export const permitWrites = "redis.call('DEL', KEYS[1] .. ':none')"

/** Lua: `nowMs` is Redis' clock as a string, ms since 1970. */
export const readClock = `local time = redis.call('TIME')
local nowMs = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))`

/** KEYS: one. ARGV: values. Deletes the key if it has one of them. */
export const DELETE_IF_EQUAL = `
local value = redis.call('GET', KEYS[1])
for i = 1, #ARGV do
  if value == ARGV[i] then redis.call('DEL', KEYS[1]) end
end`
