import {
  type ApiKeyRecord,
  generateApiKey,
  hashApiKey,
  type Project,
  type RegistryState,
} from '@sluice/projects'

/** The part of the registry that the authenticator uses, in memory. */
export class FakeRegistry {
  readonly projectsById = new Map<string, Project>()
  readonly keysByHash = new Map<string, ApiKeyRecord>()
  /** How many keys were looked up. */
  lookups = 0
  state: RegistryState = 'known'
  /** Runs before each lookup of keys resolves. */
  beforeAnswer: () => Promise<void> = () => Promise.resolve()

  addProject(fields: Partial<Project> = {}): Project {
    const project = { id: 'demo', createdAt: '', enabled: true, retentionDays: 30, ...fields }
    this.projectsById.set(project.id, project)
    return project
  }

  addKey(fields: Partial<ApiKeyRecord> = {}): { key: string; keyHash: string; record: ApiKeyRecord } {
    const key = generateApiKey()
    const keyHash = hashApiKey(key)
    const record: ApiKeyRecord = {
      id: 'key_1',
      projectId: 'demo',
      name: '',
      scopes: ['ingest'],
      createdAt: '',
      expiresAt: undefined,
      revokedAt: undefined,
      ...fields,
    }
    this.keysByHash.set(keyHash, record)
    return { key, keyHash, record }
  }

  readonly keys = {
    findMany: async (keyHashes: readonly string[]): Promise<(ApiKeyRecord | undefined)[]> => {
      this.lookups += keyHashes.length
      const records = keyHashes.map((keyHash) => this.keysByHash.get(keyHash))
      await this.beforeAnswer()
      return records
    },
  }

  readonly identity = { read: (): Promise<RegistryState> => Promise.resolve(this.state) }

  readonly projects = {
    find: (id: string): Promise<Project | undefined> => Promise.resolve(this.projectsById.get(id)),
  }
}

/** What an authenticator needs, besides the registry. */
export const authenticatorOptions = {
  scope: 'ingest' as const,
  usage: { recordUse: () => undefined },
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}
