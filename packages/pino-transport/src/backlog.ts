/** A thread that keeps up gets less at once: pino's buffer between the threads has 4 MiB. */
const LARGE_CHARACTERS = 1024 * 1024
/** A burst of 100,000 usual lines. */
const LARGE_CHARACTERS_IN_A_ROW_MAX = 32 * 1024 * 1024

/**
 * Notices that the application logs faster than this thread reads. pino keeps the lines in the application's memory, and does not tell how
 * many there are. But each piece of text is then as large as the buffer between the threads.
 */
export class Backlog {
  #charactersInARow = 0

  /** @returns whether lines should be skipped, so that the backlog ends */
  isTooLarge(piece: string): boolean {
    this.#charactersInARow = piece.length < LARGE_CHARACTERS ? 0 : this.#charactersInARow + piece.length
    return this.#charactersInARow > LARGE_CHARACTERS_IN_A_ROW_MAX
  }
}
