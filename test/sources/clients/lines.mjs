import { createInterface } from 'node:readline'

/** The records that the test writes to the standard input. */
export async function* read() {
  for await (const line of createInterface({ input: process.stdin })) yield JSON.parse(line)
}

/** The same, some at a time. */
export async function* readBatches(size) {
  let records = []
  for await (const record of read()) {
    records.push(record)
    if (records.length === size) yield records.splice(0)
  }
  yield records
}
