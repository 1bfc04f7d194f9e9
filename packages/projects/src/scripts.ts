/**
 * What changes projects and keys, each in one atomic step: whatever races with it, or dies beside it, finds all of it or
 * nothing. All keys have the prefix's hash tag, so that they are in one slot of a Redis Cluster.
 */

/**
 * KEYS: the project, the set of projects, its tombstone. ARGV: id, time of creation, retention in days, channel.
 * 1; 0 when the id is taken; for an id that a deleted project has still, minus the time at which it is free, ms.
 */
export const CREATE_PROJECT = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local keptUntilMs = redis.call('GET', KEYS[3])
if keptUntilMs then return -tonumber(keptUntilMs) end
redis.call('HSET', KEYS[1], 'createdAt', ARGV[2], 'enabled', 'true', 'retentionDays', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('PUBLISH', ARGV[4], ARGV[1])
return 1`

/** KEYS: the project. ARGV: its id, 'true' or 'false', channel. 0 when there is no such project. */
export const ENABLE_PROJECT = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'enabled', ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[1])
return 1`

/** KEYS: the project. ARGV: how many fields are set, these with their values, the fields to remove. 0: no such project. */
export const SET_LIMITS = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local last = 1 + 2 * tonumber(ARGV[1])
for i = 2, last, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
for i = last + 1, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
return 1`

/**
 * KEYS: the project, the set of projects, its tombstone, the set of its keys, the ids of keys.
 * ARGV: id, time of deletion in ms, retention where the record has none in days, days beyond it, prefix of a key's
 * record, channel. The time until which the id is kept, ms; 0 when there is no such project.
 */
export const DELETE_PROJECT = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local days = tonumber(redis.call('HGET', KEYS[1], 'retentionDays') or ARGV[3]) + tonumber(ARGV[4])
local keptUntilMs = string.format('%.0f', tonumber(ARGV[2]) + days * 86400000)
for _, hash in ipairs(redis.call('SMEMBERS', KEYS[4])) do
  local key = ARGV[5] .. hash
  local id = redis.call('HGET', key, 'id')
  if id then redis.call('HDEL', KEYS[5], id) end
  redis.call('PEXPIREAT', key, keptUntilMs)
end
redis.call('DEL', KEYS[1], KEYS[4])
redis.call('SREM', KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], keptUntilMs, 'PXAT', keptUntilMs)
redis.call('PUBLISH', ARGV[6], ARGV[1])
return tonumber(keptUntilMs)`

/**
 * KEYS: the project, the set of its keys, the new key, the ids of keys. ARGV: the new key's hash and id, channel, then
 * the fields and values of its record. 0 when there is no such project.
 */
export const CREATE_KEY = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[3], unpack(ARGV, 4))
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[4], ARGV[2], ARGV[1])
redis.call('PUBLISH', ARGV[3], ARGV[1])
return 1`

/**
 * KEYS: the project, the set of its keys, the new key, the ids of keys, the old key. ARGV: the new key's hash and id,
 * channel, the old key's hash, now, the old key's new end, then the fields and values of the new record.
 * 'done', or why not: 'no project', 'revoked', 'replaced', 'expired'.
 */
export const ROTATE_KEY = `
if redis.call('EXISTS', KEYS[1], KEYS[5]) < 2 then return 'no project' end
local expiresAt, revokedAt, replacedBy = unpack(redis.call('HMGET', KEYS[5], 'expiresAt', 'revokedAt', 'replacedBy'))
if revokedAt then return 'revoked' end
if replacedBy then return 'replaced' end
if expiresAt and expiresAt <= ARGV[5] then return 'expired' end
if expiresAt and expiresAt < ARGV[6] then ARGV[6] = expiresAt end
redis.call('HSET', KEYS[5], 'expiresAt', ARGV[6], 'replacedBy', ARGV[2])
redis.call('HSET', KEYS[3], unpack(ARGV, 7))
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[4], ARGV[2], ARGV[1])
redis.call('PUBLISH', ARGV[3], ARGV[1])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 'done'`

/** KEYS: the key. ARGV: its hash, now, channel. When it was revoked first; nil when there is no such key. */
export const REVOKE_KEY = `
if redis.call('EXISTS', KEYS[1]) == 0 then return nil end
redis.call('HSETNX', KEYS[1], 'revokedAt', ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[1])
return redis.call('HGET', KEYS[1], 'revokedAt')`

/** KEYS: keys. ARGV: when each was last used. A later time stays, and a key that is gone stays gone. */
export const NOTE_KEYS_USED = `
for i, key in ipairs(KEYS) do
  local id, before = unpack(redis.call('HMGET', key, 'id', 'lastUsedAt'))
  if id and (not before or before < ARGV[i]) then redis.call('HSET', key, 'lastUsedAt', ARGV[i]) end
end`
