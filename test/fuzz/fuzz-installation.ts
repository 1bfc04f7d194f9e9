import { type Installation, provisionProject, startInstallation, withRegistry } from '@sluice/local'
import { canaryProject } from './canaries.ts'
import type { FuzzKeys } from './fuzz-request.ts'

/** The project of requests whose responses are all read, and the project of the others. */
export const exactProject = 'fuzz-exact'
export const tornProject = 'fuzz-torn'
const orphanProject = 'fuzz-orphan'

export interface FuzzInstallation extends Installation {
  readonly port: number
  readonly keys: FuzzKeys
  readonly canaryKey: string
}

const environment = {
  // The minimum, so that idempotency records expire during the run.
  IDEMPOTENCY_WINDOW_SECONDS: '60',
  // The fuzzer tests how requests affect each other. On a machine with other load, the API would reject some of them
  // because of its event-loop delay.
  EVENT_LOOP_DELAY_HIGH_MS: '60000',
}

export async function startFuzzInstallation(): Promise<FuzzInstallation> {
  const installation = await startInstallation({
    prefix: 'fuzz',
    api: { environment },
  })
  try {
    const port = Number(new URL(installation.apiUrl).port)
    return { ...installation, port, ...(await makeKeys(installation)) }
  } catch (error) {
    await installation.stop({ force: true })
    throw error
  }
}

function makeKeys(installation: Installation): Promise<Pick<FuzzInstallation, 'keys' | 'canaryKey'>> {
  return withRegistry(installation, async (registry) => {
    const exact = await provisionProject(registry, exactProject)
    const torn = await provisionProject(registry, tornProject)
    const orphan = await provisionProject(registry, orphanProject)
    const canaryKey = await provisionProject(registry, canaryProject)
    const { key: reader } = await registry.keys.create(tornProject, { scopes: ['read'] })
    const { key: revoked, record } = await registry.keys.create(tornProject)
    await registry.keys.revoke(record.id)
    await registry.projects.delete(orphanProject)
    return { keys: { exact, torn, orphan, reader, revoked }, canaryKey }
  })
}
