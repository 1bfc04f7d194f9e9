import { beforeEach, describe, expect, it } from 'vitest'
import { ClickHouseMonitor } from '../src/clickhouse-monitor.ts'

let nowMs: number
let monitor: ClickHouseMonitor

beforeEach(() => {
  nowMs = 1_000
  monitor = new ClickHouseMonitor(() => nowMs)
})

const READY = { ready: true, reasons: [] }
const SILENT = { ready: false, reasons: ['ClickHouse does not answer on new connections'] }

/** Questions without an answer, every six seconds. */
function askFor(silentMs: number): void {
  for (const endMs = nowMs + silentMs; nowMs < endMs; nowMs += 6_000) monitor.silent()
}

describe('readiness', () => {
  it('is there before the first query', () => {
    expect(monitor.readiness).toEqual(READY)
  })

  it('ends with a question without an answer, until something is answered', () => {
    monitor.silent()
    expect(monitor.readiness).toEqual(SILENT)
    monitor.answered()
    expect(monitor.readiness).toEqual(READY)
  })

  it('returns when nothing waits for ClickHouse any more', () => {
    monitor.silent()
    nowMs += 20_000
    expect(monitor.readiness).toEqual(SILENT)
    nowMs += 1
    expect(monitor.readiness).toEqual(READY)
  })

  it('ends with a query that ClickHouse does not run, until each such query ended or is running', () => {
    monitor.lost('a')
    monitor.lost('a')
    monitor.lost('b')
    monitor.answered()
    monitor.found('a')
    expect(monitor.readiness).toEqual({
      ready: false,
      reasons: ['ClickHouse does not run queries that wait for its answer: their connections may be silent'],
    })
    monitor.found('b')
    expect(monitor.readiness).toEqual(READY)
  })
})

describe('liveness', () => {
  it('ends after two minutes without any answer', () => {
    askFor(120_000)
    expect(monitor.isAlive).toBe(true)
    askFor(12_000)
    expect(monitor.isAlive).toBe(false)
    monitor.answered()
    expect(monitor.isAlive).toBe(true)
  })

  it('is there if ClickHouse answers once in two minutes', () => {
    for (let minute = 0; minute < 10; minute += 1) {
      askFor(60_000)
      expect(monitor.isAlive).toBe(true)
      monitor.answered()
    }
  })

  it('is there if nothing waits for ClickHouse', () => {
    askFor(60_000)
    nowMs += 600_000
    expect(monitor.isAlive).toBe(true)
    // The process was suspended, or had no queries. The silence begins again.
    askFor(60_000)
    expect(monitor.isAlive).toBe(true)
  })

  it('does not depend on a query that ClickHouse does not run', () => {
    monitor.lost('a')
    nowMs += 600_000
    expect(monitor.isAlive).toBe(true)
  })
})
