import { expect, it } from 'vitest'
import { buildTopology, planFaults, scheduleLimits, type Fault } from './schedule.ts'

const topology = buildTopology(2, 2)

function plan(seed: number, minutes: number, hasPowerCuts = false): Fault[] {
  return planFaults({ seed, durationMs: minutes * 60_000, topology, hasPowerCuts })
}

it('returns the same faults for the same seed, and different ones for another seed', () => {
  expect(plan(7, 3)).toEqual(plan(7, 3))
  expect(plan(7, 3)).not.toEqual(plan(8, 3))
})

it('orders all faults by time, within the duration of the run', () => {
  const times = plan(7, 3).map(({ atMs }) => atMs)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(times.at(-1)).toBeLessThan(180_000)
})

it('kills more than a hundred times in twenty minutes, and every process at least once', () => {
  const killed = plan(7, 20).flatMap((fault) => (fault.kind === 'kill' ? [fault.process] : []))
  expect(killed.length).toBeGreaterThan(110)
  expect(new Set(killed)).toEqual(new Set(topology.processes.map(({ name }) => name)))
})

it('has long faults only in a long run, and power cuts only where they are possible', () => {
  const kinds = (minutes: number, hasPowerCuts: boolean): Set<string> =>
    new Set(plan(7, minutes, hasPowerCuts).map(({ kind }) => kind))
  expect([...kinds(20, false).difference(kinds(1, false))].toSorted()).toEqual(['memory', 'rule'])
  expect([...kinds(1, true).difference(kinds(1, false))]).toEqual(['power'])
  const cut = plan(7, 20, true).flatMap((fault) => (fault.kind === 'power' ? [fault.process] : []))
  expect(new Set(cut)).toEqual(new Set(['redis', 'clickhouse']))
})

it('freezes workers for longer than any lock only in a long run', () => {
  expect(longFreezes(plan(7, 1))).toEqual([])
  expect(longFreezes(plan(7, 20)).length).toBeGreaterThan(3)
})

it('injects no other fault into a worker during a long freeze', () => {
  const faults = plan(7, 20)
  for (const { atMs, process } of longFreezes(faults)) {
    const disturbing = faults.filter(
      (other) =>
        other.atMs > atMs &&
        other.atMs < atMs + scheduleLimits.longFreezeMs &&
        'process' in other &&
        other.process === process,
    )
    expect(disturbing).toEqual([])
  }
})

function longFreezes(faults: readonly Fault[]): { atMs: number; process: string }[] {
  return faults.flatMap((fault) =>
    fault.kind === 'freeze' && fault.forMs === scheduleLimits.longFreezeMs ? [fault] : [],
  )
}
