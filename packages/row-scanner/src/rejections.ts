/** The records of a body are not read any further, so none is stored. */
export class RejectedBody extends Error {
  override name = 'RejectedBody'
  /** How many records were found before. */
  readonly records: number

  constructor(message: string, records = 0) {
    super(message)
    this.records = records
  }
}

/** The request has more records than allowed, or its rows are too large, with the metadata of rejected records. */
export class TooManyRecords extends RejectedBody {
  override name = 'TooManyRecords'
  readonly limit: 'records' | 'bytes'

  constructor(limit: 'records' | 'bytes', records = 0) {
    super(`the request has too many ${limit}`, records)
    this.limit = limit
  }
}

/** The body is not JSON. The message says why. */
export class InvalidJson extends RejectedBody {
  override name = 'InvalidJson'
}

/** The body is not the message that its protocol has, in Protocol Buffers or in JSON. The message says why. */
export class InvalidMessage extends RejectedBody {
  override name = 'InvalidMessage'
}

/** The body is JSON without records in the expected place. */
export class WrongShape extends RejectedBody {
  override name = 'WrongShape'
}

/** An action of a bulk request is malformed, so what its line is about is not known. */
export class MalformedAction extends RejectedBody {
  override name = 'MalformedAction'
  /** Of the lines that are not empty, from 1. */
  readonly line: number

  constructor(line: number, message: string, records: number) {
    super(message, records)
    this.line = line
  }
}
