/**
 * The Lua scripts that change projects and keys. Each script is one atomic step: a concurrent command, or a process that
 * crashes, leaves all of its changes or none. All Redis keys contain the prefix's hash tag, so they share one slot of a
 * Redis Cluster.
 */

/**
 * KEYS: the project, the set of projects, the project's tombstone.
 * ARGV: id, creation time, retention in days, channel.
 *
 * @returns 1; 0 when the id is taken; for an id still reserved by a deleted project, minus the time at which it becomes
 *   free, ms
 */
export const CREATE_PROJECT = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local keptUntilMs = redis.call('GET', KEYS[3])
if keptUntilMs then return -tonumber(keptUntilMs) end
redis.call('HSET', KEYS[1], 'createdAt', ARGV[2], 'enabled', 'true', 'retentionDays', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('PUBLISH', ARGV[4], ARGV[1])
return 1`

/**
 * Until when rows of a project may exist, ms: those with its present retention, and those with an earlier, longer one. ARGV: the time in
 * ms, retention in days for a record without one, days to keep beyond the retention.
 */
const rowsUntil = `
local function rowsUntil(project, nowMs, daysDefault, daysBeyond)
  local days, earlierMs = unpack(redis.call('HMGET', project, 'retentionDays', 'rowsUntilMs'))
  local untilMs = tonumber(nowMs) + ((days or daysDefault) + daysBeyond) * 86400000
  return string.format('%.0f', math.max(untilMs, tonumber(earlierMs or 0)))
end`

/**
 * KEYS: the project.
 * ARGV: id, channel, the time in ms, retention in days for a record without one, days to keep beyond the retention, the number of fields to
 * set, these fields with their values, the fields to remove.
 *
 * @returns 1; 0 when there is no such project
 */
export const CHANGE_PROJECT = `
${rowsUntil}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local last = 6 + 2 * tonumber(ARGV[6])
for i = 7, last, 2 do
  if ARGV[i] == 'retentionDays' then
    redis.call('HSET', KEYS[1], 'rowsUntilMs', rowsUntil(KEYS[1], ARGV[3], ARGV[4], ARGV[5]))
  end
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
for i = last + 1, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
redis.call('PUBLISH', ARGV[2], ARGV[1])
return 1`

/**
 * KEYS: the project, the set of projects, the project's tombstone, the set of its keys, the key ids.
 * ARGV: id, deletion time in ms, retention in days for a record without one, days to keep beyond the retention, Redis key
 * of an API key's record without the hash, channel, deletion time in ISO 8601.
 *
 * Each key is marked: if the project is imported later, only the keys of the backup become active again.
 *
 * @returns the time until which the id is reserved, ms; 0 when there is no such project
 */
export const DELETE_PROJECT = `
${rowsUntil}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local keptUntilMs = rowsUntil(KEYS[1], ARGV[2], ARGV[3], ARGV[4])
for _, hash in ipairs(redis.call('SMEMBERS', KEYS[4])) do
  local key = ARGV[5] .. hash
  local id = redis.call('HGET', key, 'id')
  if id then
    redis.call('HDEL', KEYS[5], id)
    redis.call('HSET', key, 'deletedAt', ARGV[7])
    redis.call('PEXPIREAT', key, keptUntilMs)
  end
end
redis.call('DEL', KEYS[1], KEYS[4])
redis.call('SREM', KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], keptUntilMs, 'PXAT', keptUntilMs)
redis.call('PUBLISH', ARGV[6], ARGV[1])
return tonumber(keptUntilMs)`

/**
 * KEYS: the project, the set of projects, the project's tombstone, the set of its keys, the key ids.
 * ARGV: id, channel, Redis key of an API key's record without the hash, then as JSON: the fields and values of the project, and for each
 * key its hash, its id, and the fields and values of its record. One argument, because a command has a limited number of them.
 *
 * A key of a deleted project is still known, and may have been revoked or rotated after the backup: this remains. Its mark as deleted
 * does not. Nor does its tombstone, but rows may exist as long as it would have.
 *
 * @returns 1; 0 when the project exists; the id of a key of another project, and the id of that project. All records are read before
 *   the first write: while the slot of a cluster moves, reading a record that is not on the node aborts the script
 */
export const IMPORT_PROJECT = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local backup = cjson.decode(ARGV[4])
for _, key in ipairs(backup.keys) do
  local hash = redis.call('HGET', KEYS[5], key.id) or key.hash
  local owner = redis.call('HGET', ARGV[3] .. hash, 'projectId')
  if owner and owner ~= ARGV[1] then return {key.id, owner} end
end
redis.call('HSET', KEYS[1], unpack(backup.fields))
redis.call('SADD', KEYS[2], ARGV[1])
local keptUntilMs, rowsUntilMs = redis.call('GET', KEYS[3]), redis.call('HGET', KEYS[1], 'rowsUntilMs')
if keptUntilMs and tonumber(keptUntilMs) > tonumber(rowsUntilMs or 0) then
  redis.call('HSET', KEYS[1], 'rowsUntilMs', keptUntilMs)
end
redis.call('DEL', KEYS[3])
for _, key in ipairs(backup.keys) do
  local name = ARGV[3] .. key.hash
  local revokedAt, replacedBy, expiresAt =
    unpack(redis.call('HMGET', name, 'revokedAt', 'replacedBy', 'expiresAt'))
  redis.call('DEL', name)
  redis.call('SADD', KEYS[4], key.hash)
  redis.call('HSET', KEYS[5], key.id, key.hash)
  redis.call('PUBLISH', ARGV[2], key.hash)
  redis.call('HSET', name, unpack(key.fields))
  if revokedAt then redis.call('HSET', name, 'revokedAt', revokedAt) end
  if replacedBy then redis.call('HSET', name, 'replacedBy', replacedBy) end
  local imported = redis.call('HGET', name, 'expiresAt')
  if expiresAt and (not imported or expiresAt < imported) then redis.call('HSET', name, 'expiresAt', expiresAt) end
end
redis.call('PUBLISH', ARGV[2], ARGV[1])
return 1`

/**
 * KEYS: the project, the set of its keys, the new key, the key ids, and the old key if the new one replaces it.
 * ARGV: the new key's hash and id, channel, the old key's hash, now, the old key's new expiry, then the fields and values
 * of the new record.
 *
 * @returns 'done', or the reason for the rejection: 'no project', 'revoked', 'replaced', 'expired'
 */
export const CREATE_KEY = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 'no project' end
if KEYS[5] then
  local id, expiresAt, revokedAt, replacedBy, deletedAt =
    unpack(redis.call('HMGET', KEYS[5], 'id', 'expiresAt', 'revokedAt', 'replacedBy', 'deletedAt'))
  if deletedAt or not id then return 'no project' end
  if revokedAt then return 'revoked' end
  if replacedBy then return 'replaced' end
  if expiresAt and expiresAt <= ARGV[5] then return 'expired' end
  if expiresAt and expiresAt < ARGV[6] then ARGV[6] = expiresAt end
  redis.call('HSET', KEYS[5], 'expiresAt', ARGV[6], 'replacedBy', ARGV[2])
end
redis.call('HSET', KEYS[3], unpack(ARGV, 7))
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[4], ARGV[2], ARGV[1])
redis.call('PUBLISH', ARGV[3], ARGV[1])
if KEYS[5] then redis.call('PUBLISH', ARGV[3], ARGV[4]) end
return 'done'`

/**
 * KEYS: the key.
 * ARGV: the key's hash, now, channel.
 *
 * @returns when the key was first revoked; nil when there is no such key
 */
export const REVOKE_KEY = `
if redis.call('EXISTS', KEYS[1]) == 0 then return nil end
redis.call('HSETNX', KEYS[1], 'revokedAt', ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[1])
return redis.call('HGET', KEYS[1], 'revokedAt')`

/**
 * KEYS: keys.
 * ARGV: when each key was last used.
 *
 * Never replaces a later time with an earlier one, and never recreates a deleted key.
 */
export const RECORD_KEY_USES = `
for i, key in ipairs(KEYS) do
  local id, before = unpack(redis.call('HMGET', key, 'id', 'lastUsedAt'))
  if id and (not before or before < ARGV[i]) then redis.call('HSET', key, 'lastUsedAt', ARGV[i]) end
end`
