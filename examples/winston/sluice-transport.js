import winston from 'winston'

/** Where winston keeps the level before it is coloured. */
const LEVEL = Symbol.for('level')

/** The levels of winston's `npm`, `syslog` and `cli`. Others are `info`. */
const levels = new Map([
  ['emerg', 'error'],
  ['alert', 'error'],
  ['crit', 'error'],
  ['error', 'error'],
  ['warn', 'warn'],
  ['warning', 'warn'],
  ['notice', 'info'],
  ['help', 'info'],
  ['data', 'info'],
  ['info', 'info'],
  ['http', 'debug'],
  ['prompt', 'debug'],
  ['verbose', 'debug'],
  ['input', 'debug'],
  ['debug', 'debug'],
  ['silly', 'debug'],
])

/** What the format `timestamp()` makes. Sluice rejects a time in another format, such as "2026-11-23 14:30:00". */
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/

/** A transport of winston that sends to Sluice. It needs the format `errors({ stack: true })` for stack traces. */
export class SluiceTransport extends winston.Transport {
  #client

  /** @param options `client`: a SluiceClient; and those of every transport, such as `level` */
  constructor({ client, ...options }) {
    super(options)
    this.#client = client
  }

  log(info, done) {
    const { level: _level, message, stack, timestamp, ...fields } = info
    const name = info[LEVEL]
    const level = levels.get(name) ?? 'info'
    const hasTime = typeof timestamp === 'string' && ISO_TIME.test(timestamp)
    this.#client.send({
      level,
      message: typeof message === 'string' ? message : toText(message ?? fields),
      stack: typeof stack === 'string' ? stack : undefined,
      // Without it, the client adds the time.
      timestamp: hasTime ? timestamp : undefined,
      metadata: {
        ...fields,
        ...(!hasTime && { timestamp }),
        ...(name !== level && { originalLevel: name }),
      },
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

/** A message that is not a text: as JSON, if it can be. Neither a BigInt nor a circle may throw in the call that logs. */
function toText(value) {
  try {
    return (
      JSON.stringify(value, (_name, each) => (typeof each === 'bigint' ? String(each) : each)) ??
      String(value)
    )
  } catch {
    return 'a message that JSON cannot hold'
  }
}
