import { startServices, type Services } from '@sluice/local'

export interface TestServicesOptions {
  /** Where the processes' logs are, and their data; a temporary directory without it. */
  readonly dataDir?: string
  readonly redis?: { readonly memoryBytesMax: number }
}

/**
 * Starts an empty Redis and an empty ClickHouse that go with their data at the end: as processes of this machine, or,
 * where `SLUICE_TEST_SERVICES=containers` asks for it, as containers of the official images.
 */
export async function startTestServices(options: TestServicesOptions = {}): Promise<Services> {
  if (process.env['SLUICE_TEST_SERVICES'] !== 'containers') return startServices(options)
  const { startContainerServices } = await import('./containers/container-services.ts')
  return startContainerServices(options)
}
