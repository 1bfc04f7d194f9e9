export {
  type ApiKeyRecord,
  generateApiKey,
  hashApiKey,
  isWellFormedApiKey,
  keyState,
  type Scope,
} from './api-key.ts'
export type { ApiKeys } from './api-keys.ts'
export type { Project, ProjectLimitChanges, ProjectLimitName, ProjectLimits, Projects } from './projects.ts'
export { readBackup, writeBackup } from './registry-backup.ts'
export { Registry } from './registry.ts'
export { RegistryError } from './registry-store.ts'
export type { RegistryIdentity, RegistryState } from './identity.ts'
export { RegistryCheck } from './registry-check.ts'
