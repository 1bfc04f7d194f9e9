import { hash } from 'node:crypto'

export interface ClickHouseConfig {
  /** The folder of the data. */
  readonly folder: string
  readonly port: number
  readonly username: string
  readonly password: string
}

/**
 * The server's configuration, as XML. It suits a laptop: at most half of the memory, and small mark caches, because their
 * defaults (5 GB) are meant for a dedicated machine.
 */
export function serverConfig({ folder, port }: ClickHouseConfig, usersFile: string): string {
  return `<clickhouse>
  <path>${escape(folder)}</path>
  <users_config>${escape(usersFile)}</users_config>
  <http_port>${port}</http_port>
  <listen_host>127.0.0.1</listen_host>
  <max_server_memory_usage_to_ram_ratio>0.5</max_server_memory_usage_to_ram_ratio>
  <mark_cache_size>268435456</mark_cache_size>
  <index_mark_cache_size>67108864</index_mark_cache_size>
  <primary_index_cache_size>268435456</primary_index_cache_size>
</clickhouse>
`
}

/**
 * The users, as XML. chDB runs its first query as the user `default` without a password, so this user must exist. It has
 * only the grants that the query needs, and may have one session. The query takes that session until the server stops.
 */
export function usersConfig({ username, password }: ClickHouseConfig): string {
  return `<clickhouse>
  <profiles>
    <default/>
    <starting><max_sessions_for_user>1</max_sessions_for_user></starting>
  </profiles>
  <quotas><default/></quotas>
  <users>
    <default>
      <password></password>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>starting</profile>
      <quota>default</quota>
      <grants>
        <query>GRANT SYSTEM LISTEN ON *.*</query>
        <query>GRANT SELECT ON system.numbers</query>
      </grants>
    </default>
    <${username}>
      <password_sha256_hex>${hash('sha256', password, 'hex')}</password_sha256_hex>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
      <access_management>1</access_management>
    </${username}>
  </users>
</clickhouse>
`
}

function escape(text: string): string {
  return text.replaceAll(/[<>&]/g, (character) => `&#${character.charCodeAt(0)};`)
}
