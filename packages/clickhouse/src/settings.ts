export const clickhouseSettings = {
  CLICKHOUSE_URL: {
    type: 'string',
    default: 'http://127.0.0.1:8123',
    description: "The URL of ClickHouse's HTTP interface, with `http://` or `https://`.",
  },
  CLICKHOUSE_TLS_CA_FILE: {
    type: 'string',
    description:
      'A PEM file with the certificate authorities trusted for an `https://` URL. By default, those of Node.js.',
  },
  CLICKHOUSE_CLUSTER: {
    type: 'string',
    pattern: String.raw`^([A-Za-z0-9_.-]{1,64}|\{[A-Za-z0-9_]{1,62}\})$`,
    description:
      'The ClickHouse cluster that has the tables, by its name in `system.clusters` or as a macro like `{cluster}`. Not set: a single server.',
  },
  CLICKHOUSE_USERNAME: { type: 'string', default: 'default', description: 'The ClickHouse user.' },
  CLICKHOUSE_PASSWORD: { type: 'string', default: '', description: 'The password of the ClickHouse user.' },
  CLICKHOUSE_DATABASE: {
    type: 'string',
    pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$',
    default: 'sluice',
    description: 'The database that has the tables.',
  },
} as const
