import { parentPort } from 'node:worker_threads'
import { DiskSpool } from '@sluice/client/spool'
import { EntrySender, printReport, Reports } from './entry-sender.ts'
import { readOptions, receiveConfig, type SluiceTransportOptions } from './options.ts'
import { TransportStream } from './transport-stream.ts'

export type { PinoLevels, SluiceTransportOptions, WhenFull } from './options.ts'
export type { TransportStream } from './transport-stream.ts'

/**
 * The function that pino calls in the thread of the transport.
 *
 * @throws TypeError if an option is missing or invalid. pino then emits `error` on the transport, which ends the application if nothing
 *   listens.
 */
export default function sluiceTransport(options: SluiceTransportOptions = {}): TransportStream {
  const settings = readOptions(options, process.env)
  const reports = new Reports(printReport, () => performance.now())
  const spool = settings.spool === undefined ? undefined : new DiskSpool(settings.spool)
  const sender = new EntrySender({ ...settings.client, spool }, reports)
  return new TransportStream(sender, receiveConfig(parentPort, settings.pinoConfig), settings)
}
