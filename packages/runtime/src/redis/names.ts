/** See `installationNames`. */
export type InstallationNames = Readonly<ReturnType<typeof installationNames>>

/**
 * The Redis names of an installation that are the same for all of its queue shards. All of them have the same hash tag: in a Redis Cluster
 * they are in one slot, so that one script may change several of them.
 *
 * @param prefix separates installations that share a Redis
 */
export function installationNames(prefix: string) {
  return {
    /** Prefix of all keys of projects and API keys. */
    registryPrefix: `{${prefix}}:registry`,
    /** The bucket of a project's rate limit. */
    rateLimitKey: (projectId: string) => `{${prefix}}:rate-limit:${projectId}`,
    /** The highest number of queue shards that was ever in use. */
    shardCountKey: `{${prefix}}:shards`,
    /** The lease of the process that reports the state of the queues. */
    reporterKey: `{${prefix}}:reporter`,
    /** The times at which the processes last reported themselves. */
    processTimesKey: `{${prefix}}:process-times`,
    /** What the processes reported: see `Heartbeat`. */
    processesKey: `{${prefix}}:processes`,
    /** The last retry of dead letters that an operator asked for: see `RetryRequests`. */
    retryKey: `{${prefix}}:retry`,
  }
}
