/**
 * The path in Keeper for the data that the replicas of a table share. It consists of names and not of the table's UUID, so that
 * a replica that is created later joins the others with the same statement.
 */
const ENGINE_ARGUMENTS = `('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')`

/**
 * A replicated table also forgets tokens that are this much older than the newest one. With the default of an hour, the first
 * insert after an outage of all workers would make it forget the tokens of earlier inserts. No outage is as long as this value,
 * so only the number of blocks counts, as in a table of a single server.
 */
export const replicatedWindowSeconds = 365 * 24 * 60 * 60

const TARGET = /^\s*(?:CREATE TABLE IF NOT EXISTS|ALTER TABLE) \w+/m
const ENGINE = /^(\s*ENGINE = )(\w*MergeTree)\b/m
const WINDOW = /\bnon_replicated_deduplication_window = (\d+)/

/**
 * Converts a statement of a migration, which is written for a single server, to its cluster form: it runs on all servers of the
 * cluster, the table is replicated, and its deduplication window is that of a replicated table.
 *
 * @param cluster validated by the pattern of CLICKHOUSE_CLUSTER, because it becomes part of the statement
 * @throws Error if no cluster form is known for the statement, which is a mistake in the migration
 */
export function replicatedStatement(statement: string, cluster: string): string {
  const target = TARGET.exec(statement)?.[0]
  if (target === undefined || (target.includes('CREATE') && !ENGINE.test(statement))) {
    const start = statement
      .replaceAll(/^\s*--.*$/gm, '')
      .trim()
      .slice(0, 60)
    throw new Error(`no cluster form is known for: ${start}`)
  }
  return statement
    .replace(TARGET, () => `${target} ${onCluster(cluster)}`)
    .replace(
      ENGINE,
      (_all, start: string, engine: string) => `${start}Replicated${engine}${ENGINE_ARGUMENTS}`,
    )
    .replace(
      WINDOW,
      (_all, blocks: string) =>
        `replicated_deduplication_window = ${blocks}, replicated_deduplication_window_seconds = ${replicatedWindowSeconds}`,
    )
}

/** The name is quoted: only a quoted name may be a macro. */
export function onCluster(cluster: string): string {
  return `ON CLUSTER '${cluster}'`
}
