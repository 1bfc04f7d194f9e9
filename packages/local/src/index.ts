export {
  type ApiApp,
  type App,
  type AppOptions,
  clickhouseEnvironment,
  startApi,
  startWorker,
} from './apps.ts'
export { clickhouseAnswers, startClickHouse } from './clickhouse.ts'
export {
  type Installation,
  type InstallationOptions,
  type Services,
  startInstallation,
  startServices,
} from './installation.ts'
export { Ports } from './ports.ts'
export { provisionProject, withRegistry } from './provision.ts'
export { findRedis, redisAnswers, startRedis } from './redis.ts'
export { type Exit, ProcessError, type ProcessSpec, SupervisedProcess } from './supervised-process.ts'
export { Supervisor } from './supervisor.ts'
