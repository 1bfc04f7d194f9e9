/**
 * The Lua scripts that change projects and keys. Each script is one atomic step: a concurrent command, or a process that
 * crashes, leaves all of its changes or none. All Redis keys contain the prefix's hash tag, so they share one slot of a
 * Redis Cluster.
 */

/**
 * How long the id of a deleted project and its keys are kept beyond the retention. The API may accept a row until its
 * caches expire, which may be on the next day, and ClickHouse drops expired rows with some delay.
 */
const KEPT_BEYOND_RETENTION_DAYS = 2

/** Until when rows of a project may exist, ms: those with its present retention, and those with an earlier, longer one. */
const rowsUntil = `
local function rowsUntil(project, nowMs)
  local days, earlierMs = unpack(redis.call('HMGET', project, 'retentionDays', 'rowsUntilMs'))
  local untilMs = nowMs + (days + ${KEPT_BEYOND_RETENTION_DAYS}) * 86400000
  return string.format('%.0f', math.max(untilMs, earlierMs or 0))
end`

/**
 * KEYS and the first three of ARGV: as in DELETE_PROJECT. The fourth: the new values of fields, strings in JSON. Null removes a field.
 *
 * @returns 1; 0 when there is no such project
 */
export const CHANGE_PROJECT = `
${rowsUntil}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local changes = cjson.decode(ARGV[4])
if changes.retentionDays then redis.call('HSET', KEYS[1], 'rowsUntilMs', rowsUntil(KEYS[1], ARGV[3])) end
for name, value in pairs(changes) do
  if value == cjson.null then redis.call('HDEL', KEYS[1], name) else redis.call('HSET', KEYS[1], name, value) end
end
return 1`

/**
 * KEYS: the project, the set of projects, the project's tombstone, the set of its keys, the key ids.
 * ARGV: id, Redis key of an API key's record without the hash, deletion time in ms, and in ISO 8601.
 *
 * Each key is marked: if the project is imported later, only the keys of the backup become active again.
 *
 * @returns the time until which the id is reserved, ms; 0 when there is no such project
 */
export const DELETE_PROJECT = `
${rowsUntil}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local keptUntilMs = rowsUntil(KEYS[1], ARGV[3])
for _, hash in ipairs(redis.call('SMEMBERS', KEYS[4])) do
  local key = ARGV[2] .. hash
  local id = redis.call('HGET', key, 'id')
  if id then
    redis.call('HDEL', KEYS[5], id)
    redis.call('HSET', key, 'deletedAt', ARGV[4])
    redis.call('PEXPIREAT', key, keptUntilMs)
  end
end
redis.call('DEL', KEYS[1], KEYS[4])
redis.call('SREM', KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], keptUntilMs, 'PXAT', keptUntilMs)
return tonumber(keptUntilMs)`

/**
 * Creates a project, or imports it with its keys. KEYS: as in DELETE_PROJECT.
 * ARGV: id, Redis key of an API key's record without the hash, then as JSON: the fields and values of the project, and for each
 * key of an import its hash, its id, and the fields and values of its record. One argument, because a command has a limited number of them.
 *
 * A key of a deleted project is still known, and may have been revoked or rotated after the backup: this remains. Its mark as deleted
 * does not. Nor does its tombstone, but rows may exist as long as it would have.
 *
 * @returns 1; 0 when the project exists; for a new project with the id of a deleted one, the time at which it becomes free, ms; the id of a
 *   key of another project, and the id of that project. All records are read before the first write: while the slot of a cluster moves,
 *   reading a record that is not on the node aborts the script
 */
export const ADD_PROJECT = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local keptUntilMs, backup = redis.call('GET', KEYS[3]), cjson.decode(ARGV[3])
if keptUntilMs and not backup.keys then return tonumber(keptUntilMs) end
backup.keys = backup.keys or {}
for _, key in ipairs(backup.keys) do
  local hash = redis.call('HGET', KEYS[5], key.id) or key.hash
  local owner = redis.call('HGET', ARGV[2] .. hash, 'projectId')
  if owner and owner ~= ARGV[1] then return {key.id, owner} end
end
redis.call('HSET', KEYS[1], unpack(backup.fields))
redis.call('SADD', KEYS[2], ARGV[1])
local rowsUntilMs = redis.call('HGET', KEYS[1], 'rowsUntilMs')
if keptUntilMs and tonumber(keptUntilMs) > tonumber(rowsUntilMs or 0) then
  redis.call('HSET', KEYS[1], 'rowsUntilMs', keptUntilMs)
end
redis.call('DEL', KEYS[3])
for _, key in ipairs(backup.keys) do
  local name = ARGV[2] .. key.hash
  local revokedAt, replacedBy, expiresAt =
    unpack(redis.call('HMGET', name, 'revokedAt', 'replacedBy', 'expiresAt'))
  redis.call('DEL', name)
  redis.call('SADD', KEYS[4], key.hash)
  redis.call('HSET', KEYS[5], key.id, key.hash)
  redis.call('HSET', name, unpack(key.fields))
  if revokedAt then redis.call('HSET', name, 'revokedAt', revokedAt) end
  if replacedBy then redis.call('HSET', name, 'replacedBy', replacedBy) end
  local imported = redis.call('HGET', name, 'expiresAt')
  if expiresAt and (not imported or expiresAt < imported) then redis.call('HSET', name, 'expiresAt', expiresAt) end
end
return 1`

/**
 * KEYS: the project, the set of its keys, the new key, the key ids, and the old key if the new one replaces it.
 * ARGV: the new key's hash and id, now, the old key's new expiry, then the fields and values of the new record.
 *
 * @returns nil, or why the old key cannot be replaced
 */
export const CREATE_KEY = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 'its project was deleted' end
if KEYS[5] then
  local id, expiresAt, revokedAt, replacedBy, deletedAt =
    unpack(redis.call('HMGET', KEYS[5], 'id', 'expiresAt', 'revokedAt', 'replacedBy', 'deletedAt'))
  if deletedAt or not id then return 'its project was deleted' end
  if revokedAt then return 'it is revoked' end
  if replacedBy then return 'it was already rotated; rotate the key that replaced it' end
  if expiresAt and expiresAt <= ARGV[3] then return 'it has expired' end
  if expiresAt and expiresAt < ARGV[4] then ARGV[4] = expiresAt end
  redis.call('HSET', KEYS[5], 'expiresAt', ARGV[4], 'replacedBy', ARGV[2])
end
redis.call('HSET', KEYS[3], unpack(ARGV, 5))
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[4], ARGV[2], ARGV[1])`

/** KEYS: the key. ARGV: now. Returns when the key was first revoked; nil when there is no such key. */
export const REVOKE_KEY = `
if redis.call('EXISTS', KEYS[1]) == 0 then return nil end
redis.call('HSETNX', KEYS[1], 'revokedAt', ARGV[1])
return redis.call('HGET', KEYS[1], 'revokedAt')`

/** KEYS: keys. ARGV: when each was last used. Never replaces a later time with an earlier one, and never recreates a deleted key. */
export const RECORD_KEY_USES = `
for i, key in ipairs(KEYS) do
  local id, before = unpack(redis.call('HMGET', key, 'id', 'lastUsedAt'))
  if id and (not before or before < ARGV[i]) then redis.call('HSET', key, 'lastUsedAt', ARGV[i]) end
end`
