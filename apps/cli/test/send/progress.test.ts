import { describe, expect, test, vi } from 'vitest'
import { Progress, progressLine, type ProgressState } from '../../src/send/progress.ts'
import { fakeContext } from '../fake-context.ts'

const state: ProgressState = {
  bytesRead: 45,
  bytesTotal: 100,
  accepted: 5_400,
  rejected: 2,
  elapsedMs: 2_000,
}

test('the progress line shows the fraction of the files that was read, and none for streams', () => {
  expect(progressLine(state)).toBe(' 45 %  5,400 accepted, 2 rejected, 2,701/s')
  expect(progressLine({ ...state, bytesTotal: undefined, rejected: 0 })).toBe('5,400 accepted, 2,700/s')
  expect(progressLine({ ...state, bytesRead: 0, bytesTotal: 0 })).toContain('100 %')
  expect(progressLine({ ...state, bytesRead: 300 })).toContain('100 %')
})

describe('Progress', () => {
  test('draws on terminals, and leaves only the notes behind', async () => {
    const { stderr, written } = fakeContext({ terminal: true })
    const progress = new Progress(stderr, () => state)
    progress.start()
    progress.note('a note')
    await vi.waitFor(() => expect(written.stderr).toContain('45 %'), { timeout: 10_000 })
    progress.stop()
    expect(written.stderr).toContain('a note\n')
    expect(written.stderr.endsWith('\r\u001B[2K')).toBe(true)
  })

  test('writes only the notes elsewhere, safe to print', () => {
    const { stderr, written } = fakeContext()
    const progress = new Progress(stderr, () => state)
    progress.start()
    progress.note('a \u001B[31mnote')
    progress.stop()
    expect(written.stderr).toBe('a \\e[31mnote\n')
  })
})
