export {
  type ApiApp,
  type App,
  type AppOptions,
  clickhouseEnvironment,
  startApi,
  startWorker,
} from './apps.ts'
export {
  askClickHouseVersion,
  type ClickHouseOptions,
  type ClickHouseProcess,
  startClickHouse,
} from './clickhouse-process.ts'
export { docker, dockerEnvironment } from './docker.ts'
export {
  type AppSettings,
  type Installation,
  type InstallationOptions,
  type Progress,
  type Services,
  type ServicesOptions,
  startInstallation,
  startServices,
} from './installation.ts'
export { Ports } from './ports.ts'
export { provisionProject, type RegistryAccess, withRegistry } from './provision.ts'
export { askRedisVersion, type RedisOptions, type RedisProcess, startRedis } from './redis-process.ts'
export { findRedis } from './redis-program.ts'
export { type Exit, ProcessError, type ProcessSpec, SupervisedProcess } from './supervised-process.ts'
export { DataDirectoryBusyError, Supervisor } from './supervisor.ts'
