import { startServices, type Services } from '@sluice/local'

/**
 * Starts an empty Redis and an empty ClickHouse that go with their data at the end: as processes of this machine, or,
 * where `SLUICE_TEST_SERVICES=containers` asks for it, as containers of the official images.
 */
export async function startTestServices(options: { dataDir?: string } = {}): Promise<Services> {
  if (process.env['SLUICE_TEST_SERVICES'] !== 'containers') return startServices(options)
  const { startContainerServices } = await import('./containers/container-services.ts')
  return startContainerServices(options)
}
