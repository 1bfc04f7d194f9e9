import { describe, expect, it } from 'vitest'
import { drawnRows, keysOf, nearsEnd, topToShow } from '../src/window.ts'

const scroll = { top: 0, height: 220, count: 100_000 }

describe('the window of a list', () => {
  it('has the visible rows and some around them', () => {
    expect(drawnRows(scroll, 0)).toEqual({ first: 0, end: 22 })
    expect(drawnRows({ ...scroll, top: 1_100_011 }, 1_100_011 - 220)).toEqual({ first: 49_988, end: 50_023 })
    expect(drawnRows({ ...scroll, top: 2_199_780 }, 2_200_000)).toEqual({ first: 99_978, end: 100_000 })
  })

  it('has only the visible rows after a jump', () => {
    expect(drawnRows({ ...scroll, top: 1_100_000 }, 0)).toEqual({ first: 50_000, end: 50_010 })
    expect(drawnRows(scroll, 221)).toEqual({ first: 0, end: 10 })
  })

  it('is empty if the list is, or became shorter than what is scrolled', () => {
    expect(drawnRows({ ...scroll, count: 0 }, 0)).toEqual({ first: 0, end: 0 })
    expect(drawnRows({ ...scroll, top: 99_999, count: 3 }, 99_999)).toEqual({ first: 3, end: 3 })
  })

  it('keeps the elements of rows that stay, and reuses them if no row stays', () => {
    const shown = keysOf(['a', 'b', 'c'], new Map())
    const scrolled = keysOf(['b', 'c', 'd'], shown)
    expect([...scrolled.values()]).toEqual([1, 2, 3])
    const jumped = keysOf(['x', 'y', 'z'], scrolled)
    expect([...jumped.values()]).toEqual([1, 2, 3])
    expect([...keysOf(['w', 'x', 'y', 'z', 'q'], jumped).values()]).toEqual([4, 1, 2, 3, 5])
  })

  it('moves as little as shows a row', () => {
    expect(topToShow({ ...scroll, top: 440 }, 25)).toBe(440)
    expect(topToShow({ ...scroll, top: 440 }, 10)).toBe(220)
    expect(topToShow({ ...scroll, top: 440 }, 40)).toBe(682)
  })

  it('asks for more near the end', () => {
    expect(nearsEnd(scroll)).toBe(false)
    expect(nearsEnd({ ...scroll, count: 50 })).toBe(true)
  })
})
