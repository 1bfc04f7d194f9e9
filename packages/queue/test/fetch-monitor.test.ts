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

describe('readiness', () => {
  it('needs a reply', () => {
    expect(monitor.readiness).toEqual({
      ready: false,
      reasons: ['chunks of a are not fetched: Redis has not answered yet'],
    })
    monitor.fetched('a')
    expect(monitor.readiness).toEqual({ ready: true, reasons: [] })
  })

  it('ends after 8 s without a reply', () => {
    monitor.fetched('a')
    nowMs += 8_000
    expect(monitor.readiness.ready).toBe(true)
    nowMs += 1_000
    expect(monitor.readiness.reasons).toEqual(['chunks of a are not fetched: Redis has not answered for 9 s'])
    monitor.fetched('a')
    expect(monitor.readiness.ready).toBe(true)
  })

  it('ends with a rejected fetch, until a fetch succeeds', () => {
    monitor.fetched('a')
    monitor.failed('a', rejection('OOM command not allowed'))
    monitor.failed('a', new Error('Connection is closed.'))
    expect(monitor.readiness.reasons).toEqual(['chunks of a are not fetched: OOM command not allowed'])
    monitor.fetched('a')
    expect(monitor.readiness.ready).toBe(true)
  })

  it('ends with a failed connection, until Redis replies', () => {
    monitor.fetched('a')
    monitor.failed('a', new Error('read ECONNRESET'))
    expect(monitor.readiness.reasons).toEqual(['chunks of a are not fetched: read ECONNRESET'])
    monitor.fetched('a')
    expect(monitor.readiness.ready).toBe(true)
  })

  it('needs all queues', () => {
    monitor.started('b')
    monitor.fetched('a')
    expect(monitor.readiness.reasons).toEqual(['chunks of b are not fetched: Redis has not answered yet'])
    monitor.stopped('b')
    expect(monitor.readiness.ready).toBe(true)
  })
})

describe('isAlive', () => {
  it('ends after two minutes without a reply for any queue', () => {
    monitor.started('b')
    nowMs += 120_000
    expect(monitor.isAlive).toBe(true)
    monitor.fetched('b')
    nowMs += 1
    expect(monitor.isAlive).toBe(true)
    nowMs += 120_000
    expect(monitor.isAlive).toBe(false)
    monitor.fetched('a')
    expect(monitor.isAlive).toBe(true)
  })

  it('lasts while Redis rejects fetches, but not while connections fail', () => {
    for (let minute = 0; minute < 5; minute += 1) {
      monitor.failed('a', rejection('OOM'))
      nowMs += 60_000
      expect(monitor.isAlive).toBe(true)
    }
    for (let minute = 0; minute < 5; minute += 1) {
      monitor.failed('a', new Error('connect ECONNREFUSED'))
      nowMs += 60_000
    }
    expect(monitor.isAlive).toBe(false)
  })
})
