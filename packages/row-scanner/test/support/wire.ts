/** A field of Protocol Buffers with bytes or a message. */
export function bytesField(number: number, ...content: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(content)
  return Buffer.concat([varint(BigInt(number * 8 + 2)), varint(BigInt(bytes.length)), bytes])
}

export function varintField(number: number, value: bigint): Buffer {
  return Buffer.concat([varint(BigInt(number * 8)), varint(value)])
}

function varint(value: bigint): Buffer {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, value)
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(rest)])
}
