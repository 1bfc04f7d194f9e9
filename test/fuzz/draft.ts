import { worse, type Ending, type FuzzKeys } from './fuzz-request.ts'

/** A request while it is made: good at first, then changed by mutations. */
export class Draft {
  readonly number: number
  method = 'POST'
  target = '/v1/logs'
  version = 'HTTP/1.1'
  /** Without Authorization, which is put in front at the end, and what says how long the body is. */
  headers: string[] = ['Host: localhost']
  contentType: string | undefined = 'application/json'
  requestId: string | undefined
  /** Undefined: the good key that the ending asks for. */
  authorization: ((keys: FuzzKeys, good: string) => string | undefined) | undefined
  body: Buffer
  entries: number | undefined
  statuses: readonly number[] | undefined
  readonly mutations: string[]
  #ending: Ending = 'keeps'

  constructor(number: number, body: Buffer) {
    this.number = number
    this.body = body
    this.requestId = `f-${number}`
    this.mutations = []
  }

  get ending(): Ending {
    return this.#ending
  }

  /** Writes down that something was changed, and what it does to the connection. */
  mutated(what: string, ending: Ending = 'keeps'): void {
    this.mutations.push(what)
    this.#ending = worse(this.#ending, ending)
  }

  head(keys: FuzzKeys): string {
    const good = this.#ending === 'keeps' || this.#ending === 'closes' ? keys.exact : keys.torn
    const authorization = this.authorization === undefined ? `Bearer ${good}` : this.authorization(keys, good)
    const lines = [`${this.method} ${this.target} ${this.version}`, ...this.headers]
    if (authorization !== undefined) lines.push(`Authorization: ${authorization}`)
    if (this.contentType !== undefined) lines.push(`Content-Type: ${this.contentType}`)
    if (this.requestId !== undefined) lines.push(`X-Request-Id: ${this.requestId}`)
    return `${lines.join('\r\n')}\r\n`
  }
}
