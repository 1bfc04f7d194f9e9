import { renewId } from './host'
import { idsPerMs } from './limits'
import { ID } from './memory'

/** The ids of rows: ascending, and all of one millisecond until that has no more. */
export class Ids {
  /** Of the next id: the last twelve bits of the first of its two numbers. */
  static counter: i32 = 0

  /** Writes an id. @returns its end */
  static write(to: i32): i32 {
    if (Ids.counter === idsPerMs) {
      renewId()
      Ids.counter = 0
    }
    store<u64>(to, load<u64>(ID) + <u64>Ids.counter)
    store<u64>(to + 8, load<u64>(ID + 8))
    Ids.counter += 1
    return to + 16
  }
}
