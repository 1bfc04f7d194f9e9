import * as columns from '../columns'
import { Decoded } from '../draft'
import { fieldOf } from '../fields'
import { PINO, readLevelText } from '../loggers/levels'
import { findEnvironment } from '../loggers/words'
import { hasAtMostCharacters } from '../records'
import { Node } from '../tape'

// The names of labels and of structured metadata that may become columns. The first with a usable value counts.
const NAMES: StaticArray<string> = [
  'level',
  'detected_level',
  'severity',
  'severity_text',
  'service_name',
  'service',
  'app',
  'application',
  'app_kubernetes_io_name',
  'job',
  'environment',
  'env',
  'deployment_environment',
  'deployment_environment_name',
  'timeUnixNano',
  'originalLevel',
]
/** Of the names above. */
const LENGTHS: v128 = i8x16(5, 14, 8, 13, 12, 7, 3, 11, 22, 3, 11, 3, 22, 27, 12, 13)
export const LEVEL_ROLES: i32 = 0
export const SERVICE_ROLES: i32 = 4
export const ENVIRONMENT_ROLES: i32 = 10
/** Members of the metadata that the mapping adds. */
export const TIME_UNIX_NANO: i32 = 14
export const ORIGINAL_LEVEL: i32 = 15
export const ROLES: i32 = 16
export const NAME_BYTES_MAX: i32 = 27

/** Promtail and Loki write this name if they know none. */
const UNKNOWN_SERVICE: string = 'unknown_service'

/** The place of a name above; negative if it is another one. */
export function roleOf(name: Node): i32 {
  if (name.bytes > NAME_BYTES_MAX) return -1
  let bits = i8x16.bitmask(i8x16.eq(LENGTHS, i8x16.splat(<i8>name.bytes)))
  for (; bits !== 0; bits &= bits - 1)
    if (isText(name.start, name.end, unchecked(NAMES[ctz(bits)]))) return ctz(bits)
  return -1
}

/** Whether bytes are a text of ASCII. */
function isText(start: i32, end: i32, text: string): bool {
  const length = text.length
  if (end - start !== length) return false
  // Most others differ in the first or the last byte.
  if (load<u8>(end - 1) !== <u8>text.charCodeAt(length - 1)) return false
  for (let i = 0; i < length; i += 1) if (load<u8>(start + i) !== <u8>text.charCodeAt(i)) return false
  return true
}

/** Writes a name above. @returns its end */
export function writeRole(to: i32, role: i32): i32 {
  const name = unchecked(NAMES[role])
  for (let i = 0; i < name.length; i += 1) store<u8>(to + i, <u8>name.charCodeAt(i))
  return to + name.length
}

/** Whether a value can become the column of a role. */
export function isUsable(role: i32, value: Node): bool {
  if (role >= TIME_UNIX_NANO) return true
  if (!value.isString) return false
  Decoded.read(value)
  const start = Decoded.start
  const end = Decoded.end
  if (role < SERVICE_ROLES) return readLevelText(PINO, start, end) !== 0
  if (role >= ENVIRONMENT_ROLES) return findEnvironment(start, end) !== 0
  return (
    start < end &&
    !isText(start, end, UNKNOWN_SERVICE) &&
    hasAtMostCharacters(value, fieldOf(columns.service).charactersMax)
  )
}
