import type { EntryError } from '@sluice/schema'

/** Takes the place of an entry whose line is not JSON. */
export class InvalidLine {
  readonly error: EntryError

  constructor(reason: string) {
    this.error = { path: '', code: 'invalid_json', message: `is not JSON: ${reason}` }
  }
}
