export { entryOfRecord } from './entry-of-record.ts'
export {
  isSynonym,
  type Level,
  type LevelReading,
  levelOf,
  levelsByName,
  readLevel,
  readLevelName,
} from './levels.ts'
export { addMember, isPlainObject, type Members, setMember } from './members.ts'
export { readTime, timeOfEpoch, timeOfIso } from './times.ts'
export { type Environment, environmentsByName, readEnvironment } from './values.ts'
