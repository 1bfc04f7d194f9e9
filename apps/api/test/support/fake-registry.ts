import { type ApiKeyRecord, generateApiKey, hashApiKey, type Project } from '@sluice/projects'

/** Projects and keys in memory, as far as the authenticator asks for them. */
export class FakeRegistry {
  readonly projects = new Map<string, Project>()
  readonly keys = new Map<string, ApiKeyRecord>()
  lookUps = 0
  /** Runs before each look-up of a key answers. */
  beforeAnswer: () => Promise<void> = () => Promise.resolve()

  addProject(fields: Partial<Project> = {}): Project {
    const project = { id: 'demo', createdAt: '', enabled: true, retentionDays: 30, ...fields }
    this.projects.set(project.id, project)
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
    this.keys.set(keyHash, record)
    return { key, keyHash, record }
  }

  async findKey(keyHash: string): Promise<ApiKeyRecord | undefined> {
    this.lookUps += 1
    const record = this.keys.get(keyHash)
    await this.beforeAnswer()
    return record
  }

  findProject(id: string): Promise<Project | undefined> {
    return Promise.resolve(this.projects.get(id))
  }
}
