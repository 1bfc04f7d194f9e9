import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'

const TYPE_A = 1
/** As Docker's name server. nginx must not rely on it. */
const TTL_S = 600
const HEADER_BYTES = 12
/** A response (QR) to a recursive query (RD, RA). */
const FLAGS = 0x81_80
const NAME_ERROR = 3
/** A pointer to the name in the question. */
const POINTER = 0xc0_0c

/** A DNS server on the loopback address with the addresses of one name, as Docker's for the name of a service. */
export class NameServer {
  readonly port: number
  /** IPv4 addresses. Without any, the name does not exist. */
  addresses: readonly string[] = []
  readonly #socket: Socket

  private constructor(socket: Socket) {
    this.#socket = socket
    this.port = socket.address().port
    socket.on('message', (query, { port, address }) => socket.send(this.#answer(query), port, address))
  }

  static async open(): Promise<NameServer> {
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return new NameServer(socket)
  }

  async close(): Promise<void> {
    this.#socket.close()
    await once(this.#socket, 'close')
  }

  #answer(query: Buffer): Buffer {
    const questionEnd = query.indexOf(0, HEADER_BYTES) + 5
    const question = query.subarray(HEADER_BYTES, questionEnd)
    const isAddress = question.readUInt16BE(question.length - 4) === TYPE_A
    const records = isAddress ? this.addresses.map(recordOf) : []
    const header = Buffer.alloc(HEADER_BYTES)
    query.copy(header, 0, 0, 2)
    header.writeUInt16BE(FLAGS | (this.addresses.length === 0 ? NAME_ERROR : 0), 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(records.length, 6)
    return Buffer.concat([header, question, ...records])
  }
}

function recordOf(address: string): Buffer {
  const record = Buffer.alloc(16)
  record.writeUInt16BE(POINTER, 0)
  record.writeUInt16BE(TYPE_A, 2)
  record.writeUInt16BE(1, 4)
  record.writeUInt32BE(TTL_S, 6)
  record.writeUInt16BE(4, 10)
  Buffer.from(address.split('.').map(Number)).copy(record, 12)
  return record
}
