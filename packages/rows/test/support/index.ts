export { anyText, foldedMetadata, validEntry } from './arbitrary-entry.ts'
export { invalidEntry, pointsInto } from './arbitrary-invalid.ts'
export { anyStyle, toJson } from './json-text.ts'
export { invalidTimestamps, validTimestamps } from './timestamps.ts'
