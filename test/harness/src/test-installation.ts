import {
  type Installation,
  type InstallationOptions,
  type Services,
  startInstallation,
  startServices,
} from '@sluice/local'

export interface TestServicesOptions {
  /** The folder for data and logs. Default: a temporary directory. */
  readonly dataDir?: string
  readonly redis?: { readonly memoryBytesMax: number }
}

/**
 * Starts an empty Redis and an empty ClickHouse, which are deleted with their data by `stop`: as processes of this machine, or with
 * `SLUICE_TEST_SERVICES=containers` as containers of the official images.
 */
export async function startTestServices(options: TestServicesOptions = {}): Promise<Services> {
  if (process.env['SLUICE_TEST_SERVICES'] !== 'containers') return startServices(options)
  const { startContainerServices } = await import('./container-services.ts')
  return startContainerServices(options)
}

export async function startTestInstallation({
  redis,
  ...options
}: Pick<InstallationOptions, 'api' | 'worker' | 'query'> &
  Pick<TestServicesOptions, 'redis'> = {}): Promise<Installation> {
  const services = await startTestServices(redis === undefined ? {} : { redis })
  return startInstallation({ ...options, services })
}
