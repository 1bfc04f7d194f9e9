import { expect, test } from 'vitest'
import { deathsMax, recentDeaths } from '../src/keep-alive.ts'

test('deaths within a minute reach the maximum', () => {
  let deaths: readonly number[] = []
  for (let i = 0; i < deathsMax; i++) deaths = recentDeaths(deaths, i * 14_000)
  expect(deaths).toHaveLength(deathsMax)
})

test('occasional deaths never reach the maximum', () => {
  let deaths: readonly number[] = []
  for (let i = 0; i < 100; i++) deaths = recentDeaths(deaths, i * 20_000)
  expect(deaths.length).toBeLessThan(deathsMax)
})
