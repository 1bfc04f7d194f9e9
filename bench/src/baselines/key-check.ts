import { hash, timingSafeEqual } from 'node:crypto'

const SCHEME = /^bearer +(\S+)$/i

/** Tells whether an Authorization header has the one key that there is; only its hash is kept. */
export class KeyCheck {
  readonly #expected: Buffer

  constructor(apiKey: string) {
    this.#expected = hash('sha256', apiKey, 'buffer')
  }

  accepts(header: string | undefined): boolean {
    const key = header === undefined ? undefined : SCHEME.exec(header)?.[1]
    return key !== undefined && timingSafeEqual(hash('sha256', key, 'buffer'), this.#expected)
  }
}
