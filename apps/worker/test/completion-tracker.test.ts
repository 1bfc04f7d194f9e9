import { describe, expect, it, vi } from 'vitest'
import { CompletionTracker } from '../src/completion-tracker.ts'
import { workerLimits } from '../src/limits.ts'

describe('CompletionTracker', () => {
  it('reports a batch once, when its last member is completed', () => {
    const onAllCompleted = vi.fn<(batchId: string, members: readonly string[]) => void>()
    const tracker = new CompletionTracker(onAllCompleted)
    tracker.expect('batch', ['a', 'b'])
    tracker.completed('a')
    tracker.completed('a')
    tracker.completed('not a member')
    expect(onAllCompleted).not.toHaveBeenCalled()
    tracker.completed('b')
    expect(onAllCompleted.mock.calls).toEqual([['batch', ['a', 'b']]])
    expect(tracker.size).toBe(0)
  })

  it('does not grow with chunks that other workers complete', () => {
    const tracker = new CompletionTracker(() => undefined)
    for (let batch = 0; batch < 100; batch += 1) {
      tracker.expect(
        `batch-${batch}`,
        Array.from({ length: workerLimits.chunksMax }, (_, i) => `${batch}-${i}`),
      )
    }
    expect(tracker.size).toBe(16 * workerLimits.chunksMax)
  })
})
