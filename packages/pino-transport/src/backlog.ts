/** A thread that keeps up gets less at once: pino's buffer between the threads has 4 MiB. */
const LARGE_CHARACTERS = 1024 * 1024
/** A burst of 80,000 usual lines. The application needs about ten times this memory for lines that wait. */
const LARGE_CHARACTERS_IN_A_ROW_MAX = 16 * 1024 * 1024

/**
 * Notices that the application logs faster than this thread reads. pino keeps the lines in the application's memory, and does not tell how
 * many there are. But each piece of text is then as large as the buffer between the threads.
 */
export class Backlog {
  #charactersInARow = 0

  /**
   * @param isStalled whether the API accepts nothing. Then most lines would be dropped after they were encoded
   * @returns whether lines should be skipped, so that the backlog ends
   */
  isTooLarge(piece: string, isStalled: boolean): boolean {
    this.#charactersInARow = piece.length < LARGE_CHARACTERS ? 0 : this.#charactersInARow + piece.length
    return this.#charactersInARow > (isStalled ? 0 : LARGE_CHARACTERS_IN_A_ROW_MAX)
  }
}
