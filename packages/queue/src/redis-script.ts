import { type DurableRedis, ReplicatedRedis } from '@sluice/runtime'

/** Runs a script on the connection for which it was defined. */
export type RedisScript<Answer> = (
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
) => Promise<Answer>

/**
 * Defines a Lua script. Its text is sent once per connection, and later runs send its hash only.
 *
 * @param name a script with the same name on the same connection must have the same text
 */
export function defineScript<Answer>(redis: DurableRedis, name: string, lua: string): RedisScript<Answer> {
  if (redis instanceof ReplicatedRedis) return redis.script(lua) as RedisScript<Answer>
  redis.defineCommand(name, { lua })
  // ioredis adds the method when the command is defined, so its types do not have it.
  const commands = redis as unknown as Readonly<
    Record<string, (...args: readonly (string | number | Buffer)[]) => Promise<Answer>>
  >
  return async (keys, args) => {
    const run = commands[name]?.bind(redis)
    if (run === undefined) throw new Error(`the script ${name} is not defined`)
    return run(keys.length, ...keys, ...args)
  }
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

/** Lua: `nowMs` is Redis' clock as a text, ms since 1970. */
export const readClock = `local time = redis.call('TIME')
local nowMs = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))`

/** KEYS: one. ARGV: values. Deletes the key if it has one of them. */
export const DELETE_IF_EQUAL = `
local value = redis.call('GET', KEYS[1])
for i = 1, #ARGV do
  if value == ARGV[i] then redis.call('DEL', KEYS[1]) end
end`
