export { type Level, levelOf, levelOfSyslogSeverity } from './levels.ts'
export { entryOfRecord } from './record.ts'
