import type { LookupFunction } from 'node:net'
import { beforeEach, expect, it } from 'vitest'
import { sharedLookup } from '../src/shared-lookup.ts'

/** The lookups that the name server has to answer. */
let asked: { readonly hostname: string; readonly answer: (address: string) => void }[]
let answers: string[]
let lookup: LookupFunction

beforeEach(() => {
  asked = []
  answers = []
  lookup = sharedLookup((hostname, _options, callback) => {
    asked.push({ hostname, answer: (address) => callback(null, address, 4) })
  })
})

const ask = (hostname: string, all = false): void =>
  lookup(hostname, { all }, (error, address) => {
    answers.push(`${hostname} ${error?.message ?? JSON.stringify(address)}`)
  })

it('a host is looked up once at a time, and all callers get the answer', () => {
  ask('collector')
  ask('collector')
  ask('another')
  ask('collector')
  expect(asked.map(({ hostname }) => hostname)).toEqual(['collector', 'another'])
  asked[0]?.answer('10.0.0.1')
  expect(answers).toEqual(Array.from({ length: 3 }, () => 'collector "10.0.0.1"'))
})

it('a host is looked up again after its answer', () => {
  ask('collector')
  asked[0]?.answer('10.0.0.1')
  ask('collector')
  asked[1]?.answer('10.0.0.2')
  expect(answers).toEqual(['collector "10.0.0.1"', 'collector "10.0.0.2"'])
})

it('answers of another form are not shared', () => {
  ask('collector')
  ask('collector', true)
  expect(asked).toHaveLength(2)
})

it('uses the name service of the system by default', async () => {
  const address = await new Promise((resolve, reject) =>
    sharedLookup()('localhost', { family: 4 }, (error, found) =>
      error === null ? resolve(found) : reject(error),
    ),
  )
  expect(address).toBe('127.0.0.1')
})
