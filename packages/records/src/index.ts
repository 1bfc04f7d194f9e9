export { entryOfRecord } from './entry-of-record.ts'
export {
  isSynonym,
  type Level,
  type LevelReading,
  levelOf,
  levelOfSyslogSeverity,
  levelsByName,
  readLevel,
  readLevelName,
} from './levels.ts'
export { addMember, isPlainObject, type Members, setMember } from './members.ts'
export { roleOfName } from './names.ts'
export { readTime, timeOfEpoch, timeOfIso } from './times.ts'
export { type Environment, readEnvironment } from './values.ts'
