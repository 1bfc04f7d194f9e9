// A setup file of vitest: all waits for events have one bound. vitest waits for a second, which a busy machine exceeds.
import { vi } from 'vitest'
import { PATIENCE_MS } from './waiting.ts'

const { waitFor, waitUntil } = vi

// Files share the object, so the second file finds it changed.
if (waitFor.name === 'waitFor') {
  vi.waitFor = (check, options) => waitFor(check, patient(options))
  vi.waitUntil = (check, options) => waitUntil(check, patient(options))
}

type Options = Parameters<typeof vi.waitFor>[1]

function patient(options: Options): Options {
  return typeof options === 'number' ? options : { timeout: PATIENCE_MS, ...options }
}
