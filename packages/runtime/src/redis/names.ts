/** The Redis names of an installation that are the same for all of its queue shards. */
export interface InstallationNames {
  /** Prefix of all keys of projects and API keys. */
  readonly registryPrefix: string
  /** The key of the bucket of a project's rate limit. */
  rateLimitKey(projectId: string): string
  /** The key of the highest number of queue shards that was ever in use. */
  readonly shardCountKey: string
  /** The key of the lease of the process that reports the state of the queues. */
  readonly reporterKey: string
  /** The key of the times at which the processes last reported themselves. */
  readonly processTimesKey: string
  /** The key of what the processes reported: see `Heartbeat`. */
  readonly processesKey: string
}

/**
 * All names have the same hash tag. In a Redis Cluster they are in one slot, so that one script may change several of them.
 *
 * @param prefix separates installations that share a Redis
 */
export function installationNames(prefix: string): InstallationNames {
  return {
    registryPrefix: `{${prefix}}:registry`,
    rateLimitKey: (projectId) => `{${prefix}}:rate-limit:${projectId}`,
    shardCountKey: `{${prefix}}:shards`,
    reporterKey: `{${prefix}}:reporter`,
    processTimesKey: `{${prefix}}:process-times`,
    processesKey: `{${prefix}}:processes`,
  }
}
