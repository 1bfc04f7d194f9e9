import { inspect } from 'node:util'
import winston from 'winston'

/** Where winston keeps the level before it is coloured. */
const LEVEL = Symbol.for('level')

/** The levels of winston's `npm`, `syslog` and `cli`. Others are `info`. */
const levels = {
  error: ['error', 'crit', 'alert', 'emerg'],
  warn: ['warn', 'warning'],
  debug: ['debug', 'http', 'verbose', 'silly', 'prompt', 'input'],
}
const levelOf = (name) => Object.keys(levels).find((level) => levels[level].includes(name)) ?? 'info'

/** A transport of winston that sends to Sluice. It needs the format `errors({ stack: true })` for stack traces. */
export class SluiceTransport extends winston.Transport {
  #client

  /** @param options `client`: a SluiceClient; and those of every transport, such as `level` */
  constructor({ client, ...options }) {
    super(options)
    this.#client = client
  }

  log(info, done) {
    const { level: _level, message, stack, ...fields } = info
    const name = info[LEVEL]
    const level = levelOf(name)
    this.#client.send({
      level,
      message: typeof message === 'string' ? message : inspect(message ?? fields),
      stack: typeof stack === 'string' ? stack : undefined,
      // The client adds the time of the call. What the format `timestamp` makes may be one that Sluice rejects.
      metadata: { ...fields, ...(name !== level && { originalLevel: name }) },
    })
    // The client has a queue of its own, which is limited. winston does not have to wait.
    done()
  }

  /** winston calls this when the logger ends. It emits `finish` afterwards. */
  async _final(done) {
    await this.#client.close()
    done()
  }
}
