import { createLogger } from '@sluice/runtime'
import { expect, it } from 'vitest'
import { resend } from '../src/resend.ts'

/** Tokens and pauses, in their order, of sending rows again. @param looks what each look finds missing */
async function sentWith(looks: readonly number[], areTokensAtomic: boolean): Promise<string[]> {
  const log: string[] = []
  const left = [...looks]
  await resend(
    {
      findMissing: async () => Array.from({ length: left.shift() ?? 0 }, (_, i) => i),
      insert: async (missing, token) => void log.push(`${token}: ${missing.length}`),
    },
    'token',
    {
      areTokensAtomic,
      sleep: async (ms) => void log.push(`sleep ${ms}`),
      logger: createLogger('test', 'silent'),
    },
  )
  expect(left).toEqual([])
  return log
}

it('sends nothing of what is there', async () => {
  expect(await sentWith([0], false)).toEqual([])
})

it('sends what is missing, and looks whether it came', async () => {
  expect(await sentWith([2, 0], false)).toEqual(['token: 2'])
})

it('gives ClickHouse time before it sends rows with another token', async () => {
  expect(await sentWith([2, 2, 0], false)).toEqual(['token: 2', 'sleep 2000'])
  expect(await sentWith([2, 2, 1, 0], false)).toEqual(['token: 2', 'sleep 2000', 'token/again/1: 1'])
})

it('does not look again where a token and its rows are one: another replica may lag', async () => {
  expect(await sentWith([2], true)).toEqual(['token: 2'])
})

it('gives up on rows that are never to be found', async () => {
  const sent = await sentWith([1, 1, 1, 1, 1, 1, 1], false)
  expect(sent.filter((line) => line.includes('again'))).toEqual([
    'token/again/1: 1',
    'token/again/2: 1',
    'token/again/3: 1',
  ])
})
