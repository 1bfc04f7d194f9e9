import { expect, it } from 'vitest'
import { type InsertTargets, openRealTargets, type ScenarioRow, simulatedTargets } from './insert-targets.ts'

const rowOf = (
  number: number,
  partition: ScenarioRow['partition'],
  rejected?: ScenarioRow['rejected'],
): ScenarioRow => ({
  id: `00000000-0000-4000-8000-00000000000${number}`,
  partition,
  ...(rejected && { rejected }),
})
const [first, second, third] = [rowOf(1, 1), rowOf(2, 2), rowOf(3, 3)]
/** Other rows of the first and of the last partition. */
const [other, last] = [rowOf(4, 1), rowOf(5, 3)]
const [poison, unknown] = [rowOf(6, 2, 'poison'), rowOf(7, 2, 'unknown')]

const rows: Readonly<Record<string, ScenarioRow>> = { first, second, third, other, last, poison, unknown }

/** Each has steps: the name of a method, its frames in brackets, and its other arguments. */
const scenarios = {
  'an insert stores the rows of all frames and partitions, and a lookup finds those that are asked for':
    'insert; insert [first,second] [other]; rows; insert [other] another; find; find [first,third] [other]; find [third]',
  'an insert with a known token stores the partitions without it, whatever its rows':
    'insert [first]; insert [first]; insert [other,second]; rows; insert [first] [second] [third]; rows; ' +
    'insert [other,first]; rows; insert [first] another; rows',
  'a token is known without its row after a crash':
    'loseRow first; find [first]; insert [first,second]; rows; insert [first] another; rows',
  'a row that is rejected rejects the insert, with its code, and no token is known':
    'insert [first,poison]; insert [poison,first]; insert [poison]; insert [first,unknown]; insert [unknown]; rows; ' +
    'find [first,poison]; insert [first,second]; rows; insert [first,poison]; rows',
  'rows that were rejected are stored when the table accepts them':
    'insert [first,poison] [unknown]; acceptAll; insert [first,poison] [unknown]; rows',
  'a broken table rejects all rows with an unlisted code, and accepts an insert without rows':
    'breakTable; insert; insert [first,second]; insert [first]; acceptAll; insert [first,second]; rows',
  // A rejection may keep partitions. ClickHouse keeps one when it has written the next one, so these inserts have three.
  'a rejected insert keeps its first partition, with its token':
    'keepPartOfRejected; insert [third,first] [poison] [last]; rows; insert [third,first] [poison] [last]; rows; ' +
    'acceptAll; insert [third,first] [poison] [last]; rows',
  'a rejected insert keeps no partition that has a rejected row, and nothing if it has one partition':
    'keepPartOfRejected; insert [second,poison]; insert [unknown]; rows; insert [poison,first,third]; rows; ' +
    'insert [second] [first,third] [unknown]; rows',
  'a dead letter is stored once per token, which is not one of rows, and found':
    'hasDeadLetter poison; insert [first]; insertDeadLetter poison; insertDeadLetter poison; insertDeadLetter unknown; ' +
    'hasDeadLetter poison; hasDeadLetter unknown; rows; find [first,poison]; deadLetters; ' +
    'insertDeadLetter poison another; deadLetters',
  'the token of a dead letter is known without it after a crash':
    'loseDeadLetter poison; hasDeadLetter poison; insertDeadLetter poison; deadLetters; ' +
    'insertDeadLetter poison another; deadLetters',
  'tokens are known until the end of the window': insertAgain('age end'),
  'tokens are forgotten outside of the window': insertAgain('age past'),
}

/** Inserts a row and a dead letter, and the same again at an age of their tokens. */
function insertAgain(age: string): string {
  const both = 'insert [first]; insertDeadLetter poison'
  return `${both}; ${age}; ${both}; ${both}; rows; deadLetters`
}

async function run(targets: InsertTargets, steps: string): Promise<readonly unknown[]> {
  const responses: unknown[] = []
  for (const step of steps.split('; ')) {
    const [name = '', ...words] = step.split(' ')
    const frames = words
      .filter((word) => word.startsWith('['))
      .map((word) => [...word.matchAll(/\w+/g)].map(([row]) => rows[row]))
    const args = words.filter((word) => !word.startsWith('[')).map((word) => rows[word] ?? word)
    const method = targets[name as keyof InsertTargets] as (...all: unknown[]) => Promise<unknown>
    responses.push([
      step,
      await (name === 'insert' || name === 'find' ? method(frames, ...args) : method(...args)),
    ])
  }
  return responses
}

it.each(Object.entries(scenarios))('the responses of ClickHouse are simulated: %s', async (_name, steps) => {
  expect(await run(await openRealTargets(), steps)).toEqual(await run(simulatedTargets(), steps))
})
