import {
  environmentsByName,
  isSynonym,
  levelsByName,
  mongoLevels,
  type Numbering,
  numberings,
  parents,
  type Role,
  roles,
  rolesByName,
} from '@sluice/records/tables'
import { environments, levels } from '@sluice/schema'

/** In the order of `assembly/loggers/roles.ts`. */
const roleNumbers: readonly Role[] = [
  'time',
  'level',
  'levelSyslog',
  'levelOtel',
  'levelPython',
  'message',
  'service',
  'serviceOfBunyan',
  'environment',
  'source',
  'url',
  'pathname',
  'stack',
  'metadata',
]
const numberingNames = ['pino', 'syslog', 'otel', 'python'] as const

/** A `Word` of `assembly/loggers/words.ts`. */
const WORD_BYTES = 48
const TEXT_BYTES = 32
/** A zero follows the text. */
const TEXT_BYTES_MAX = 31
/** A name that is only the first part of others. */
const NO_ROLE = -1
/** Numbers of a numbering that have a place in the memory. */
const NUMBERS = 64
/** Added to a level that says no more than the contract's. */
const EXACT = 16

interface Word {
  readonly text: string
  readonly value: number
  readonly rank: number
  readonly isParent: boolean
}

export interface WordAreas {
  readonly words: number
  readonly wordsMax: number
  readonly numberings: number
  readonly letters: number
}

/** Writes what @sluice/records knows of loggers. @returns the numbers of names, of levels and of environments */
export function writeWords(memory: Buffer, areas: WordAreas): readonly [number, number, number] {
  const groups = [names(), levelNames(), environmentNames()] as const
  const all = groups.flat()
  if (all.length > areas.wordsMax) throw new Error('there are too many words for the scanner')
  for (const [index, word] of all.entries()) writeWord(memory, areas.words + index * WORD_BYTES, word)
  for (const [index, name] of numberingNames.entries())
    writeNumbering(memory, areas.numberings + index * NUMBERS, numberings[name])
  // The scanner knows which of them say more.
  for (const [letter, level] of mongoLevels)
    memory[areas.letters + letter.charCodeAt(0) - 65] = levels.indexOf(level) + 1
  return [groups[0].length, groups[1].length, groups[2].length]
}

/** Ranks are doubled: a name in another case is between two of them. */
function names(): readonly Word[] {
  const withRole = [...rolesByName].map(([text, { role, rank }]) => ({
    text,
    value: roleNumbers.indexOf(role),
    rank: (rank + roles[role].rank) * 2,
    isParent: parents.has(text),
  }))
  const others = [...parents].filter((text) => !rolesByName.has(text))
  return [...withRole, ...others.map((text) => ({ text, value: NO_ROLE, rank: 0, isParent: true }))]
}

function levelNames(): readonly Word[] {
  return firstOf(levels, levelsByName).map(([text, level]) => ({
    text,
    value: levels.indexOf(level),
    rank: isSynonym(text) ? 1 : 0,
    isParent: false,
  }))
}

function environmentNames(): readonly Word[] {
  return firstOf(environments, environmentsByName).map(([text, environment]) => ({
    text,
    value: environments.indexOf(environment),
    rank: 0,
    isParent: false,
  }))
}

/** The words of the contract come first, in its order. */
function firstOf<Value extends string>(
  contract: readonly Value[],
  byName: ReadonlyMap<string, Value>,
): [string, Value][] {
  const own = contract.map((value): [string, Value] => [value, value])
  return [...own, ...[...byName].filter(([name]) => !(contract as readonly string[]).includes(name))]
}

function writeWord(memory: Buffer, at: number, { text, value, rank, isParent }: Word): void {
  if (text.length > TEXT_BYTES_MAX) throw new Error(`${text} is too long for the scanner`)
  memory.fill(0, at, at + WORD_BYTES).write(text, at, 'latin1')
  for (const [index, number] of [text.length, value, rank, Number(isParent)].entries())
    memory.writeInt32LE(number, at + TEXT_BYTES + index * 4)
}

function writeNumbering(memory: Buffer, at: number, numbering: Numbering): void {
  for (const [number, level] of numbering.levels) {
    if (number >= NUMBERS) throw new Error(`the level ${number} is too large for the scanner`)
    memory[at + number] = (levels.indexOf(level) + 1) | (numbering.exact.includes(number) ? EXACT : 0)
  }
}
