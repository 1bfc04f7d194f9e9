// An API that accepts everything and stores nothing. It sends its address to its parent.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'

const server = createServer((request, response) => {
  const pieces: Buffer[] = []
  request.on('data', (piece: Buffer) => pieces.push(piece))
  request.on('end', () => {
    const { logs } = JSON.parse(decode(Buffer.concat(pieces), request.headers['content-encoding'])) as {
      readonly logs: readonly unknown[]
    }
    response
      .writeHead(202, { 'content-type': 'application/json' })
      .end(JSON.stringify({ success: true, accepted: logs.length, rejected: 0 }))
  })
})

function decode(bytes: Buffer, encoding: string | undefined): string {
  if (encoding === 'zstd') return zstdDecompressSync(bytes).toString()
  return (encoding === 'gzip' ? gunzipSync(bytes) : bytes).toString()
}

server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
process.once('disconnect', () => process.exit())
