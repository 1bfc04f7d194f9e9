import { beforeEach, describe, expect, it } from 'vitest'
import { FetchMonitor } from '../src/fetch-monitor.ts'

const rejection = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' })

let nowMs: number
let monitor: FetchMonitor

beforeEach(() => {
  nowMs = 1_000
  monitor = new FetchMonitor(() => nowMs)
  monitor.started('a')
})

const reasons = (): readonly string[] => monitor.readiness.reasons

describe('readiness', () => {
  it('needs a reply for all queues', () => {
    expect(reasons()).toEqual(['chunks of a are not fetched: Redis has not answered yet'])
    monitor.fetched('a')
    expect(monitor.readiness).toEqual({ ready: true, reasons: [] })
    monitor.started('b')
    expect(reasons()).toEqual(['chunks of b are not fetched: Redis has not answered yet'])
    monitor.stopped('b')
    expect(monitor.readiness.ready).toBe(true)
  })

  it.each([
    ['9 s without one', () => (nowMs += 9_000), 'Redis has not answered for 9 s'],
    ['a failed connection', () => monitor.failed('a', new Error('read ECONNRESET')), 'read ECONNRESET'],
    ['a rejected fetch', () => monitor.failed('a', rejection('OOM')), 'OOM'],
  ])('ends after %s, until Redis replies', (_what, happen, reason) => {
    monitor.fetched('a')
    nowMs += 8_000
    expect(monitor.readiness.ready).toBe(true)
    monitor.fetched('a')
    happen()
    expect(reasons()).toEqual([`chunks of a are not fetched: ${reason}`])
    monitor.fetched('a')
    expect(monitor.readiness.ready).toBe(true)
  })
})

describe('isAlive', () => {
  it('ends after two minutes without a reply for any queue', () => {
    monitor.started('b')
    nowMs += 120_000
    monitor.fetched('b')
    nowMs += 120_000
    expect(monitor.isAlive).toBe(true)
    nowMs += 1
    expect(monitor.isAlive).toBe(false)
    monitor.fetched('a')
    expect(monitor.isAlive).toBe(true)
  })

  it.each([
    ['lasts while Redis rejects fetches', rejection('OOM'), true],
    ['does not last while connections fail', new Error('connect ECONNREFUSED'), false],
  ])('%s', (_what, error, isAlive) => {
    for (let minute = 0; minute < 5; minute += 1) {
      monitor.failed('a', error)
      nowMs += 60_000
    }
    expect(monitor.isAlive).toBe(isAlive)
  })
})
