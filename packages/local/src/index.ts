export {
  type ApiApp,
  type App,
  type AppOptions,
  type AppSettings,
  clickhouseEnvironment,
  startApi,
  startWorker,
} from './apps.ts'
export { clickhouseAnswers, startClickHouse } from './clickhouse.ts'
export {
  type Installation,
  type InstallationOptions,
  type Services,
  type ServicesOptions,
  startInstallation,
  startServices,
} from './installation.ts'
export { Ports } from './ports.ts'
export { provisionProject, type RegistryAccess, withRegistry } from './provision.ts'
export { findRedis, redisAnswers, startRedis } from './redis.ts'
export { type Exit, ProcessError, type ProcessSpec, SupervisedProcess } from './supervised-process.ts'
export { DataDirectoryBusyError, Supervisor } from './supervisor.ts'
