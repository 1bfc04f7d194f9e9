import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Progress, progressLine, type ProgressState } from '../../src/send/progress.ts'
import { fakeContext } from '../fake-context.ts'

const state: ProgressState = {
  bytesRead: 45,
  bytesTotal: 100,
  accepted: 5_400,
  rejected: 2,
  elapsedMs: 2_000,
}

describe('the progress line', () => {
  test('shows the fraction of the files that was read', () => {
    expect(progressLine(state, 0)).toBe(
      `${'█'.repeat(13)}${'░'.repeat(17)}  45 %  5,400 accepted, 2 rejected, 2,701/s`,
    )
  })

  test('shows a spinner for streams', () => {
    const stream = { ...state, bytesTotal: undefined, rejected: 0 }
    expect(progressLine(stream, 1)).toBe('⠙ 5,400 accepted, 2,700/s')
  })

  test('is full for empty files, and never exceeds 100 %', () => {
    expect(progressLine({ ...state, bytesRead: 0, bytesTotal: 0 }, 0)).toContain('100 %')
    expect(progressLine({ ...state, bytesRead: 300 }, 0)).toContain('100 %')
  })
})

describe('Progress', () => {
  test('draws on terminals, and leaves only the notes behind', async () => {
    const { stderr, written } = fakeContext({ terminal: true })
    const progress = new Progress(stderr, () => state)
    progress.start()
    progress.note('a note')
    await sleep(250)
    progress.stop()
    expect(written.stderr).toContain('a note\n')
    expect(written.stderr).toContain('45 %')
    expect(written.stderr.endsWith('\r\u001B[2K')).toBe(true)
  })

  test('writes only the notes elsewhere, safe to print', async () => {
    const { stderr, written } = fakeContext()
    const progress = new Progress(stderr, () => state)
    progress.start()
    progress.note('a \u001B[31mnote')
    await sleep(250)
    progress.stop()
    expect(written.stderr).toBe('a \\e[31mnote\n')
  })
})
