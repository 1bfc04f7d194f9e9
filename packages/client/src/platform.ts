import type { GlobalScope } from './browser.ts'

/** Clocks, randomness and globals. Tests pass others. */
export interface Platform {
  readonly scope: GlobalScope
  /** A clock that never goes back, for durations. */
  readonly monotonicMs: () => number
  /** The time of day, for timestamps. */
  readonly wallMs: () => number
  /** 0 ≤ random < 1 */
  readonly random: () => number
  readonly uuid: () => string
}

export function systemPlatform(): Platform {
  return {
    scope: globalThis,
    monotonicMs: () => performance.now(),
    wallMs: Date.now,
    random: Math.random,
    uuid: randomUuid,
  }
}

function randomUuid(): string {
  const { randomUUID } = crypto as { randomUUID?: () => string }
  return randomUUID === undefined ? assembleUuid() : crypto.randomUUID()
}

/** A random UUID in pages that were loaded without TLS, where `crypto.randomUUID` does not exist. */
export function assembleUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  // The version, 4, and the variant of RFC 9562.
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
