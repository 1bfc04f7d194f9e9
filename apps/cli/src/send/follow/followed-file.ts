import { entryBytesMax, sendLimits } from '../entry-sender.ts'
import { type Line, LineSplitter } from '../lines.ts'
import { continuationWaitMs } from '../send-source.ts'
import { type LineOptions, SourceEntries, type SourceEntry } from '../source-entries.ts'
import type { Segment } from './follow-state.ts'
import type { LogTail } from './log-tail.ts'
import { type DeliveryContext, type FollowedEntry, SegmentDelivery } from './segment-delivery.ts'

export interface FollowedFileOptions {
  readonly path: string
  readonly lines: LineOptions
  /** Those of the state. They are removed when their last entry is acknowledged, and there is a newer one. */
  readonly segments: Segment[]
  readonly delivery: DeliveryContext
  readonly monotonicMs: () => number
  readonly onLine: (line: { readonly bytes: number; readonly wasUtf8: boolean }) => void
  readonly onTooLong: (origin: string) => void
}

/** Sends the lines of one log as they are written. */
export class FollowedFile {
  readonly #options: FollowedFileOptions
  #reading: SegmentReading | undefined
  readonly #ending: Promise<void>[] = []

  constructor(options: FollowedFileOptions) {
    this.#options = options
  }

  /** Reads until the tail ends. Resolves when all requests are answered, or have failed. */
  async run(tail: Pick<LogTail, 'events'>): Promise<void> {
    for await (const event of tail.events()) {
      if (event.kind === 'begin') await this.#begin(event.segment)
      else if (event.kind === 'bytes') await this.#reading?.addBytes(event.bytes)
      else if (event.kind === 'pause') await this.#reading?.onPause()
      else await this.#end()
    }
    await this.#reading?.settled()
    await Promise.all(this.#ending)
  }

  async #begin(segment: Segment): Promise<void> {
    // Lines may have been added to it since.
    segment.isEnded = false
    this.#reading = new SegmentReading(segment, this.#options)
    await this.#forgetEnded()
  }

  async #end(): Promise<void> {
    const reading = this.#reading
    this.#reading = undefined
    if (reading === undefined) return
    await reading.finish()
    this.#ending.push(this.#forgetWhenComplete(reading))
  }

  async #forgetWhenComplete(reading: SegmentReading): Promise<void> {
    await reading.settled()
    reading.segment.isEnded = reading.isComplete
    await this.#forgetEnded()
  }

  /** Forgets the files whose entries are all acknowledged, except for those from whose time on the next file is searched. */
  async #forgetEnded(): Promise<void> {
    const { segments, delivery } = this.#options
    const newestMs = Math.max(...segments.map(({ modifiedMs }) => modifiedMs))
    const left = segments.filter(({ isEnded, modifiedMs }) => !isEnded || modifiedMs >= newestMs)
    segments.splice(0, segments.length, ...left)
    await delivery.state.save().catch(delivery.onFailure)
  }
}

type Place = Pick<FollowedEntry, 'resumeAt' | 'memory'>
const placeOf = ({ resumeAt, memory }: Place): Place => ({ resumeAt, memory })

/** Makes requests of the bytes of one file. */
class SegmentReading {
  readonly segment: Segment
  readonly #options: FollowedFileOptions
  readonly #splitter = new LineSplitter(entryBytesMax)
  readonly #entries: SourceEntries
  readonly #delivery: SegmentDelivery
  /** Where the requests ended that may have been sent before a crash. */
  #boundaries: readonly number[]
  /** Where each line begins that waits for its continuation. */
  readonly #lineStarts = new Map<number, number>()
  #gathered: FollowedEntry[] = []
  #gatheredBytes = 0
  #gatheredSinceMs = 0
  #lastLineMs = 0
  /** No line came for a while, so that the last record was closed. */
  #hasPaused = false
  /** The position after the last line. */
  #position: number
  /** Where the last request ended. */
  #sentUpTo: Place

  constructor(segment: Segment, options: FollowedFileOptions) {
    this.segment = segment
    this.#options = options
    this.#position = segment.offset
    this.#sentUpTo = { resumeAt: segment.offset, memory: segment.memory }
    this.#boundaries = segment.ends
    this.#entries = new SourceEntries(options.lines, segment.memory)
    this.#delivery = new SegmentDelivery(segment, options.delivery)
  }

  get isComplete(): boolean {
    return this.#delivery.isComplete
  }

  settled(): Promise<void> {
    return this.#delivery.settled()
  }

  async addBytes(bytes: Buffer): Promise<void> {
    for (const line of this.#splitter.push(bytes)) await this.#addLine(line)
  }

  /** Sends what has waited long enough. */
  async onPause(): Promise<void> {
    const nowMs = this.#options.monotonicMs()
    if (this.#entries.isWaiting && nowMs - this.#lastLineMs >= continuationWaitMs) {
      await this.#flushRecords()
      this.#hasPaused = true
    }
    if (this.#gathered.length > 0 && nowMs - this.#gatheredSinceMs >= sendLimits.requestAgeMaxMs)
      await this.#send()
  }

  /** Sends the rest: the file is complete, even if its last line has no newline. */
  async finish(): Promise<void> {
    for (const line of this.#splitter.end()) await this.#addLine(line)
    await this.#flushRecords()
    await this.#send()
  }

  async #addLine({ number, text, bytes, wasUtf8 }: Line): Promise<void> {
    const start = this.#position
    if (this.#hasPaused) {
      // After a crash, there is no pause before this line. The end of the request shows that there was one.
      await this.#send()
      this.#hasPaused = false
    }
    if (start >= (this.#boundaries[0] ?? Number.POSITIVE_INFINITY)) {
      // The request before a crash ended here. Its entries must become the same request again.
      await this.#flushRecords()
      await this.#send()
      this.#boundaries = this.#boundaries.filter((boundary) => boundary > start)
    }
    this.#lineStarts.set(number, start)
    this.#position = start + bytes
    this.#lastLineMs = this.#options.monotonicMs()
    this.#options.onLine({ bytes, wasUtf8 })
    if (text === undefined) this.#options.onTooLong(this.#originOf(start))
    else await this.#addEntries(this.#entries.push(text, number))
    this.#forgetLines()
  }

  async #flushRecords(): Promise<void> {
    await this.#addEntries(this.#entries.flush())
    this.#forgetLines()
  }

  async #addEntries(made: readonly SourceEntry[]): Promise<void> {
    const waiting = this.#entries.firstWaitingLine
    const resumeAt = (waiting === undefined ? undefined : this.#lineStarts.get(waiting)) ?? this.#position
    const { memory } = this.#entries
    // The entries of one record begin a request, or are all in it: after a crash, the same requests are made from its first line on.
    if (made.length > 1 && !this.#hasRoomFor(made)) await this.#send()
    for (const [index, { entry, firstLine }] of made.entries()) {
      const bytes = Buffer.byteLength(entry)
      const origin = this.#originOf(this.#lineStarts.get(firstLine) ?? this.#position)
      if (bytes > entryBytesMax) {
        this.#options.onTooLong(origin)
        continue
      }
      if (this.#gatheredBytes + bytes > sendLimits.requestBytesMax) await this.#send()
      if (this.#gathered.length === 0) this.#gatheredSinceMs = this.#options.monotonicMs()
      // Of several entries of one record, only the last one lets the offset pass the record.
      const isLast = index === made.length - 1
      const before = this.#gathered.at(-1) ?? this.#sentUpTo
      this.#gathered.push({ entry, bytes, origin, ...(isLast ? { resumeAt, memory } : placeOf(before)) })
      this.#gatheredBytes += bytes
      if (this.#gathered.length >= sendLimits.entriesPerRequestMax) await this.#send()
    }
  }

  #hasRoomFor(made: readonly SourceEntry[]): boolean {
    let bytes = this.#gatheredBytes
    for (const { entry } of made) bytes += Buffer.byteLength(entry)
    return (
      bytes <= sendLimits.requestBytesMax &&
      this.#gathered.length + made.length <= sendLimits.entriesPerRequestMax
    )
  }

  async #send(): Promise<void> {
    const entries = this.#gathered
    this.#gathered = []
    this.#gatheredBytes = 0
    this.#sentUpTo = entries.at(-1) ?? this.#sentUpTo
    await this.#delivery.send(entries)
  }

  #originOf(start: number): string {
    return `${this.#options.path}, byte ${start}`
  }

  /** The lines that do not wait are not asked for any more. */
  #forgetLines(): void {
    const waiting = this.#entries.firstWaitingLine ?? Number.POSITIVE_INFINITY
    for (const number of this.#lineStarts.keys()) {
      if (number >= waiting) break
      this.#lineStarts.delete(number)
    }
  }
}
