import { type TimeZone, timeZoneOf } from './time-zone.ts'

/** The zones of one file are few. A zone costs some kilobytes. */
const ZONES_MAX = 64

/** Zones that lines name, such as `Europe/Berlin`. */
export class NamedZones {
  readonly #zones = new Map<string, TimeZone | undefined>()

  /** @returns undefined if there is no zone of this name */
  get(name: string): TimeZone | undefined {
    if (this.#zones.has(name)) return this.#zones.get(name)
    if (this.#zones.size >= ZONES_MAX) return undefined
    const zone = zoneOrUndefined(name)
    this.#zones.set(name, zone)
    return zone
  }
}

function zoneOrUndefined(name: string): TimeZone | undefined {
  try {
    return timeZoneOf(name)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
