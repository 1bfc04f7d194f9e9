import { describe, expect, it } from 'vitest'
import {
  type Age,
  type InsertTargets,
  RealTargets,
  type ScenarioRow,
  SimulatedTargets,
} from './insert-targets.ts'

const first: ScenarioRow = { name: 'first', partition: 1 }
const second: ScenarioRow = { name: 'second', partition: 2 }
const third: ScenarioRow = { name: 'third', partition: 3 }
/** Another row of the first partition. */
const other: ScenarioRow = { name: 'other', partition: 1 }
const poison: ScenarioRow = { name: 'poison', partition: 2, rejected: 'poison' }
const unknown: ScenarioRow = { name: 'unknown', partition: 2, rejected: 'unknown' }

/** Runs steps, and returns their responses. */
type Scenario = (targets: InsertTargets) => Promise<readonly unknown[]>

const inserts: Readonly<Record<string, Scenario>> = {
  'an insert stores the rows of all frames and partitions': async (targets) => [
    await targets.insert([[first, second], [other]], 'token'),
    await targets.rows(),
  ],
  'an insert without rows succeeds': async (targets) => [
    await targets.insert([], 'token'),
    await targets.insert([[first]], 'token'),
    await targets.rows(),
  ],
  'an insert with a known token stores nothing, whatever its rows': async (targets) => {
    await targets.insert([[first, second]], 'token')
    return [
      await targets.insert([[first, second]], 'token'),
      await targets.insert([[other, first]], 'token'),
      await targets.rows(),
    ]
  },
  'an insert with another token stores the same rows again': async (targets) => {
    await targets.insert([[first]], 'token')
    return [await targets.insert([[first]], 'another'), await targets.rows()]
  },
  'an insert with a known token stores the partitions without it': async (targets) => {
    await targets.insert([[first]], 'token')
    return [
      await targets.insert([[other, second]], 'token'),
      await targets.rows(),
      await targets.insert([[first], [second], [third]], 'token'),
      await targets.rows(),
    ]
  },
  'a token is known without its row after a crash': async (targets) => {
    await targets.loseRow(first, 'token')
    return [
      await targets.find([[first]]),
      await targets.insert([[first, second]], 'token'),
      await targets.rows(),
      await targets.insert([[first]], 'another'),
      await targets.rows(),
    ]
  },
  'a lookup finds the rows that are stored, of those that are asked for': async (targets) => {
    await targets.insert([[first, second], [other]], 'token')
    await targets.insert([[other]], 'another')
    return [
      await targets.find([]),
      await targets.find([[first, third], [other]]),
      await targets.find([[third]]),
    ]
  },
}

const rejections: Readonly<Record<string, Scenario>> = {
  'a row that is rejected for itself rejects the insert, and no token is known': async (targets) => [
    await targets.insert([[first, poison]], 'token'),
    await targets.insert([[poison, first]], 'token'),
    await targets.insert([[poison]], 'token'),
    await targets.rows(),
    await targets.find([[first, poison]]),
    await targets.insert([[first, second]], 'token'),
    await targets.rows(),
  ],
  'a row that is rejected with an unlisted code rejects the insert': async (targets) => [
    await targets.insert([[first, unknown]], 'token'),
    await targets.insert([[unknown]], 'token'),
    await targets.rows(),
  ],
  'an insert with a known token is rejected as well': async (targets) => {
    await targets.insert([[first, second]], 'token')
    return [await targets.insert([[first, poison]], 'token'), await targets.rows()]
  },
  'rows that were rejected are stored when the table accepts them': async (targets) => {
    await targets.insert([[first, poison], [unknown]], 'token')
    await targets.acceptAll()
    return [await targets.insert([[first, poison], [unknown]], 'token'), await targets.rows()]
  },
  'a broken table rejects all rows with an unlisted code': async (targets) => {
    await targets.breakTable()
    const answers = [
      await targets.insert([[first, second]], 'token'),
      await targets.insert([[first]], 'token'),
    ]
    await targets.acceptAll()
    return [...answers, await targets.insert([[first, second]], 'token'), await targets.rows()]
  },
  'a broken table accepts an insert without rows': async (targets) => {
    await targets.breakTable()
    return [await targets.insert([], 'token')]
  },
}

/** A rejection may keep partitions. ClickHouse keeps one when it has written the next one, so these inserts have three. */
const parts: Readonly<Record<string, Scenario>> = {
  'a rejected insert keeps its first partition, with its token': async (targets) => {
    const rows = [[third, first], [poison], [{ ...other, partition: 3 }]] as const
    await targets.keepPartOfRejected()
    const answers = [
      await targets.insert(rows, 'token'),
      await targets.rows(),
      await targets.insert(rows, 'token'),
      await targets.rows(),
    ]
    await targets.acceptAll()
    return [...answers, await targets.insert(rows, 'token'), await targets.rows()]
  },
  'a rejected insert keeps no partition that has a rejected row': async (targets) => {
    await targets.keepPartOfRejected()
    return [
      await targets.insert([[poison, first, third]], 'token'),
      await targets.rows(),
      await targets.insert([[second], [first, third], [unknown]], 'token'),
      await targets.rows(),
    ]
  },
  'a rejected insert of one partition keeps nothing': async (targets) => {
    await targets.keepPartOfRejected()
    return [
      await targets.insert([[second, poison]], 'token'),
      await targets.insert([[unknown]], 'token'),
      await targets.rows(),
    ]
  },
}

const letters: Readonly<Record<string, Scenario>> = {
  'a dead letter is stored once per token, and found': async (targets) => {
    const before = await targets.hasDeadLetter(poison)
    await targets.insertDeadLetter(poison, 'token')
    await targets.insertDeadLetter(poison, 'token')
    await targets.insertDeadLetter(unknown, 'token')
    return [
      before,
      await targets.hasDeadLetter(poison),
      await targets.hasDeadLetter(unknown),
      await targets.deadLetters(),
    ]
  },
  'a dead letter is stored again with another token': async (targets) => {
    await targets.insertDeadLetter(poison, 'token')
    await targets.insertDeadLetter(poison, 'another')
    return [await targets.deadLetters()]
  },
  'the tokens of rows are not those of dead letters': async (targets) => {
    await targets.insert([[first]], 'token')
    await targets.insertDeadLetter(poison, 'token')
    return [await targets.rows(), await targets.deadLetters(), await targets.find([[first, poison]])]
  },
  'the token of a dead letter is known without it after a crash': async (targets) => {
    await targets.loseDeadLetter(poison, 'token')
    const isFound = await targets.hasDeadLetter(poison)
    await targets.insertDeadLetter(poison, 'token')
    const stored = await targets.deadLetters()
    await targets.insertDeadLetter(poison, 'another')
    return [isFound, stored, await targets.deadLetters()]
  },
  'tokens are known until the end of the window': (targets) => insertAfter('end of the window', targets),
  'tokens are forgotten outside of the window': (targets) => insertAfter('past the window', targets),
}

/** Inserts a row and a dead letter, and the same again at an age of their tokens. */
async function insertAfter(age: Age, targets: InsertTargets): Promise<readonly unknown[]> {
  const insertBoth = async (): Promise<void> => {
    await targets.insert([[first]], 'token')
    await targets.insertDeadLetter(poison, 'token')
  }
  await insertBoth()
  await targets.age(age)
  await insertBoth()
  await insertBoth()
  return [await targets.rows(), await targets.deadLetters()]
}

describe('the responses of ClickHouse are simulated:', () => {
  it.each(Object.entries({ ...inserts, ...rejections, ...parts, ...letters }))('%s', async (_name, run) => {
    const real = await run(await RealTargets.open())
    expect(real).toEqual(await run(new SimulatedTargets()))
  })
})
