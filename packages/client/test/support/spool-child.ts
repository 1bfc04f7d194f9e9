// Logs numbers with a spool until it is killed, and prints which of them are in the spool. Arguments: the address of the API, the directory,
// and the first number; with an empty one, it only sends what others left.
import { SluiceClient } from '../../src/index.ts'
import { DiskSpool } from '../../src/spool/disk-spool.ts'

const [url = '', directory = '', first = ''] = process.argv.slice(2)
const spool = new DiskSpool({ directory })
const print = (text: string): void => void process.stdout.write(`${text}\n`)
const client = new SluiceClient({
  url,
  apiKey: 'slk_test',
  flushIntervalMs: 5,
  batchEntriesMax: 20,
  requestTimeoutMs: 1_000,
  spool,
  onDropped: (entries, reason) => print(`lost ${entries.length} ${reason}`),
  onRejected: ({ error }) => print(`lost ${error.code}`),
  onError: ({ message }) => print(`lost ${message}`),
})
setInterval(() => undefined, 1_000)

async function logFrom(start: number): Promise<never> {
  for (let number = start; ; number += 1) {
    client.info(String(number))
    if (number % 7 > 0) continue
    await spool.written()
    print(`written ${number}`)
  }
}
if (first !== '') await logFrom(Number(first))
