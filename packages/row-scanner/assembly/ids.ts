import { copy } from './bytes'
import { renewId } from './host'
import { idCounterAt, idsPerMs } from './limits'
import { ID } from './memory'
import { hexDigit } from './strings'

/** The length of a UUID as a string. */
const ID_BYTES: i32 = 36

/** The ids of rows: ascending, and all of one millisecond until that has no more. */
export class Ids {
  /** Of the next id. */
  private static counter: i32 = 0

  /** Called when there is the first id of another millisecond at `ID`. */
  static restart(): void {
    Ids.counter = 0
  }

  /** Writes an id. @returns its end */
  static write(to: i32): i32 {
    if (Ids.counter === idsPerMs) {
      renewId()
      Ids.counter = 0
    }
    const digits = ID + idCounterAt
    store<u8>(digits, hexDigit(<u8>(Ids.counter >> 8)))
    store<u8>(digits + 1, hexDigit(<u8>((Ids.counter >> 4) & 15)))
    store<u8>(digits + 2, hexDigit(<u8>(Ids.counter & 15)))
    Ids.counter += 1
    return copy(to, ID, ID_BYTES)
  }
}
