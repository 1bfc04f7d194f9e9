import { GenericContainer } from 'testcontainers'

/** The images that docker-compose.yml names. */
export const officialImages = {
  redis: 'redis:8-bookworm',
  clickhouse: 'clickhouse/clickhouse-server:26.8',
} as const

/** What docker-compose.yml gives Redis. */
const MEMORY_BYTES_MAX = 1024 * 1024 * 1024

/** Redis, set as docker-compose.yml sets it. */
export function redisContainer(
  password: string,
  memoryBytesMax: number = MEMORY_BYTES_MAX,
): GenericContainer {
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '']
  const bounded = ['--maxmemory', String(memoryBytesMax), '--maxmemory-policy', 'noeviction']
  const command = ['redis-server', ...durable, ...bounded, '--requirepass', password]
  return new GenericContainer(officialImages.redis).withCommand(command)
}

/**
 * ClickHouse with one user, `sluice`. It is not Testcontainers' own module for it, which asks for more open files than
 * some engines give.
 */
export function clickhouseContainer(password: string): GenericContainer {
  return new GenericContainer(officialImages.clickhouse).withEnvironment({
    CLICKHOUSE_USER: 'sluice',
    CLICKHOUSE_PASSWORD: password,
  })
}
