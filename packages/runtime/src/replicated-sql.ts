/**
 * Where Keeper has what the replicas of a table share. By the names, not by the table's UUID: a replica that is made
 * later joins the others with the same statement.
 */
const ENGINE_ARGUMENTS = `('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')`

/**
 * A replicated table also forgets a token that is so much older than the newest: with the default, an hour, the first
 * insert after an outage of all workers would make it forget what was inserted before. So the age is one that no outage
 * reaches, and the number of blocks alone decides, as in a table of one server.
 */
export const replicatedWindowSeconds = 365 * 24 * 60 * 60

const TARGET = /^\s*(?:CREATE TABLE IF NOT EXISTS|ALTER TABLE) \w+/m
const ENGINE = /^(\s*ENGINE = )(\w*MergeTree)\b/m
const WINDOW = /\bnon_replicated_deduplication_window = (\d+)/

/**
 * A statement of a migration, as it is written for one server, in its form for a cluster: run on all of its servers, its
 * table replicated, its deduplication window that of a replicated table.
 *
 * @param cluster validated by the pattern of CLICKHOUSE_CLUSTER: it becomes part of the statement
 * @throws Error when no form for a cluster is known of it: a mistake in a migration
 */
export function replicatedStatement(statement: string, cluster: string): string {
  const target = TARGET.exec(statement)?.[0]
  if (target === undefined || (target.includes('CREATE') && !ENGINE.test(statement))) {
    const start = statement
      .replaceAll(/^\s*--.*$/gm, '')
      .trim()
      .slice(0, 60)
    throw new Error(`no form for a cluster is known of: ${start}`)
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

/** Quoted: only then may the name be a macro. */
export function onCluster(cluster: string): string {
  return `ON CLUSTER '${cluster}'`
}
