import { describe, expect, test } from 'vitest'
import { FollowWindow } from '../../src/logs/follow-window.ts'

const at = (receivedAtMs: number) => ({ id: `entry-${receivedAtMs}`, receivedAtMs })

describe('FollowWindow', () => {
  test('remembers what was received within the overlap, and forgets older ids', () => {
    const window = new FollowWindow({ overlapMs: 100, seenMax: 1_000 })
    for (const ms of [1_000, 1_050, 1_100]) window.add(at(ms))
    window.advance(1_100)
    expect(window.floorMs).toBe(1_000)
    expect(window.has('entry-1000')).toBe(true)

    window.advance(1_120)
    expect(window.floorMs).toBe(1_020)
    expect(window.has('entry-1000')).toBe(false)
    expect(window.has('entry-1050')).toBe(true)
  })

  test('never moves back in time', () => {
    const window = new FollowWindow({ overlapMs: 100, seenMax: 1_000 })
    window.advance(1_000)
    window.advance(500)
    expect(window).toMatchObject({ newestMs: 1_000, floorMs: 900 })
  })

  test('is bounded: the floor rises above a forgotten id', () => {
    const window = new FollowWindow({ overlapMs: 1_000_000, seenMax: 3 })
    for (const ms of [10, 20, 30, 40, 50]) window.add(at(ms))
    expect(window.size).toBe(3)
    expect(window.floorMs).toBe(21)
  })

  test('does not remember ids below the floor', () => {
    const window = new FollowWindow({ overlapMs: 0, seenMax: 3 })
    window.advance(1_000)
    window.add(at(999))
    expect(window.size).toBe(0)
  })

  test('starts at 0 for a project without entries', () => {
    const window = new FollowWindow({ overlapMs: 100, seenMax: 3 })
    window.advance(0)
    expect(window.floorMs).toBe(0)
  })
})
