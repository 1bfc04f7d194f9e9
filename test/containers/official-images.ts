import { GenericContainer } from 'testcontainers'

/** The images that docker-compose.yml names. */
export const officialImages = {
  redis: 'redis:8-bookworm',
  clickhouse: 'clickhouse/clickhouse-server:26.8',
} as const

/** Redis, set as `npm start` and docker-compose.yml set theirs. */
export function redisContainer(password: string): GenericContainer {
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '']
  const bounded = ['--maxmemory-policy', 'noeviction']
  return new GenericContainer(officialImages.redis).withCommand([
    'redis-server',
    ...durable,
    ...bounded,
    '--requirepass',
    password,
  ])
}

/** ClickHouse with one user, `sluice`. Not Testcontainers' own module for it, which asks for more open files than some engines give. */
export function clickhouseContainer(password: string): GenericContainer {
  return new GenericContainer(officialImages.clickhouse).withEnvironment({
    CLICKHOUSE_USER: 'sluice',
    CLICKHOUSE_PASSWORD: password,
  })
}
