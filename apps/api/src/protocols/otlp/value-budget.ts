import { isTooDeep } from '@sluice/rows'
import { limits } from '@sluice/schema'
import type { Members } from '@sluice/records'
import { RecordError } from './log-record.ts'

export const recordLimits = {
  /**
   * Larger records are rejected without being decoded. The largest valid ones have a message and a stack of 256 KiB each, and metadata
   * whose numbers take up to six times their bytes as JSON.
   */
  bytesMax: 1024 * 1024,
  /**
   * The least bytes that values take as JSON, those of repeated names and fields included. The addition is for the names of attributes
   * that become columns, and for a body.
   */
  valueBytesMax: limits.metadataBytesMax + 256,
  /**
   * Fields of Protocol Buffers, and values of JSON. Two of them are needed for an element of an array, which takes at least two bytes as
   * JSON. The addition is for the record itself.
   */
  partsMax: limits.metadataBytesMax + 1024,
} as const

/**
 * Levels of metadata: `attributes` and `resource` are on level 2, the attributes of `scope` on level 3. A body is a member of metadata, which
 * is level 1.
 */
export const levels = { body: 1, attributes: 2, scopeAttributes: 3 } as const

/** Bounds the values of a record, a resource or a scope while they are decoded: a value may take only two bytes. */
export class ValueBudget {
  #left: number = recordLimits.valueBytesMax
  #parts: number = recordLimits.partsMax

  /** Takes a field of Protocol Buffers: a message may repeat each of its fields. @throws RecordError */
  takeField(): void {
    this.#parts -= 1
    if (this.#parts < 0)
      throw new RecordError('too_large', `must have at most ${recordLimits.partsMax} fields`)
  }

  /** Takes an element of an array: at least one character and a separator. @throws RecordError */
  takeElement(): void {
    this.#take(2)
  }

  /** Takes a member of an object: in addition two quotes and a colon. @throws RecordError */
  takeMember(name: string): void {
    this.#take(5 + name.length)
  }

  /** Takes an integer beyond 2^53, in addition to the element or the member: it has at least 16 digits. @throws RecordError */
  takeLongInteger(): void {
    this.#take(15)
  }

  #take(bytes: number): void {
    this.#left -= bytes
    if (this.#left < 0) {
      const message = `must have at most ${limits.metadataBytesMax} bytes as JSON`
      throw new RecordError('too_large', message, '/metadata')
    }
  }

  /** @throws RecordError for an array or a key-value list that metadata cannot have at this level */
  enter(level: number): void {
    if (level > limits.metadataDepthMax) throw metadataTooDeep()
  }
}

/**
 * Checks attributes that many records have in common, once: a record is checked when its row is made.
 *
 * @param level their level in metadata
 * @throws RecordError
 */
export function checkDepth(attributes: Members, level: number): void {
  if (isTooDeep(attributes, level)) throw metadataTooDeep()
}

function metadataTooDeep(): RecordError {
  return new RecordError('too_deep', `must have at most ${limits.metadataDepthMax} levels`, '/metadata')
}

/** @throws RecordError */
export function checkBytes(bytes: number): void {
  if (bytes > recordLimits.bytesMax) {
    throw new RecordError('too_large', `must have at most ${recordLimits.bytesMax} bytes`)
  }
}
