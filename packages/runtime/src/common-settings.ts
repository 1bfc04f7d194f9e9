import { integerSetting, stringSetting } from './settings.ts'

/** How many processes an app runs: at most as many as the largest common machines have cores. */
export const processCount = { type: 'integer', minimum: 1, maximum: 32, default: 1 } as const

/** Settings that every process has. Each process spreads them into its own schema. */
export const commonSettings = {
  LOG_LEVEL: stringSetting(
    { enum: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], default: 'info' },
    'The lowest level that is logged.',
  ),
  LOG_FORMAT: stringSetting(
    { enum: ['auto', 'json', 'pretty'], default: 'auto' },
    'The format of the log: lines of JSON, or `pretty` ones for people. `auto` is `pretty` on a terminal. See docs/logs.md.',
  ),
  OPS_HOST: stringSetting(
    { default: '127.0.0.1' },
    'The address on which the ops server (health checks) listens.',
  ),
  OPS_PORT: integerSetting(
    { minimum: 0, maximum: 65_535, default: 0 },
    'The port of the ops server. 0 selects a free port.',
  ),
  SHUTDOWN_DEADLINE_MS: integerSetting(
    { minimum: 100, maximum: 600_000, default: 8_000 },
    'The time in ms that a process has to finish its work after SIGTERM. Then it exits, and other processes recover the rest.',
  ),
} as const

export const redisSettings = {
  REDIS_URL: stringSetting(
    { default: 'redis://127.0.0.1:6379' },
    'The URL of Redis: `redis://`, `redis-sentinel://` or `redis-cluster://`. With TLS, the scheme starts with `rediss`. See docs/scaling.md.',
  ),
  REDIS_TLS_CA_FILE: stringSetting(
    {},
    'A PEM file with the certificate authorities trusted for Redis. By default, those of Node.js.',
  ),
  REDIS_SENTINEL_PASSWORD: stringSetting({}, 'The password of the Sentinels, if they require one.'),
  REDIS_ALLOW_UNSAFE: {
    type: 'boolean',
    default: false,
    description:
      'If true, a process is ready even if Redis may lose or evict acknowledged entries: without `appendonly yes`, `appendfsync always` and `maxmemory-policy noeviction`.',
  },
  REDIS_MEMORY_BYTES: integerSetting(
    { minimum: 1_048_576, default: 1_073_741_824 },
    'Memory budget that the API assumes for a Redis server without `maxmemory`, in bytes.',
  ),
  REDIS_REPLICAS_ACK: integerSetting(
    { minimum: 0, maximum: 8, default: 0 },
    'How many replicas must have an entry on disk before it is acknowledged: all replicas that each primary has. 0 means that a failover may lose and duplicate entries. See docs/scaling.md.',
  ),
  QUEUE_SHARDS: integerSetting(
    {
      minimum: 1,
      // The shards of a worker share its memory. With more shards, no shard could hold the chunks of a batch.
      maximum: 32,
      default: 1,
    },
    'The number of queues over which chunks are distributed. All processes need the same number, except during a change of it. See docs/scaling.md.',
  ),
  SLUICE_PREFIX: stringSetting(
    { pattern: '^[A-Za-z0-9_.-]{1,64}$', default: 'sluice' },
    'The prefix of all names in Redis. Installations that share a Redis need different prefixes.',
  ),
} as const
