import {
  conditions,
  environmentsByName,
  levelsByName,
  numberings,
  parents,
  readings,
  rolesByName,
  wrappers,
} from '@sluice/records/tables'
import { environments, levels, sources } from '@sluice/schema'
import { choices, columnOf, fieldNames } from './fields.ts'

/** Where the parts of a `Word` in `assembly/loggers/words.ts` are. */
const TEXT_AT = 16
const NUMBERS_AT = 48
/** A zero follows the text. */
const TEXT_BYTES_MAX = 31
/** The kind of a node of a string that is not JSON: `TEXT` in `assembly/tape.ts`. */
const TEXT = 8
/** For each numbering of levels, the numbers that have a place in the memory. */
const NUMBERS = 64
/** Added to a level that says no more than the contract's. */
const EXACT = 16

/** Writes the names and values of the contract, and what @sluice/records knows of loggers. @returns the number of words */
export function writeWords(
  memory: Buffer,
  areas: Readonly<Record<'WORDS' | 'WORDS_MAX' | 'WORD_BYTES' | 'NUMBERINGS', number>>,
): number {
  // The scanner expects the words of the contract first.
  const contract: readonly string[] = [...levels, ...environments]
  const names = [...fieldNames, ...rolesByName.keys(), ...parents, ...wrappers]
  const values = [...sources, ...levelsByName.keys(), ...environmentsByName.keys()]
  const words = [...new Set([...contract, ...names, ...values])]
  if (words.length > areas.WORDS_MAX) throw new Error('there are too many words for the scanner')
  for (const [index, text] of words.entries()) {
    const { length } = text
    if (length > TEXT_BYTES_MAX) throw new Error(`${text} is too long for the scanner`)
    const at = areas.WORDS + index * areas.WORD_BYTES
    memory.writeInt32LE(TEXT, at)
    memory.writeInt32LE(at + TEXT_AT, at + 4)
    memory.writeInt32LE(at + TEXT_AT + length, at + 8)
    memory.write(text, at + TEXT_AT, 'latin1')
    const environment = environmentsByName.get(text)
    const ofEnvironment = environment === undefined ? 0 : contract.indexOf(environment)
    const [, choiceOf] = choices.find(([value]) => value === text) ?? []
    const ofContract = [fieldNames.indexOf(text) + 1, choiceOf === undefined ? 0 : columnOf(choiceOf) + 1]
    const numbers = [readingNumber(levelsByName.get(text)), ofEnvironment, Number(wrappers.has(text))]
    memory.set([...roleNumbers(text), ...numbers, ...ofContract], at + NUMBERS_AT)
  }
  for (const [index, numbering] of Object.values(numberings).entries())
    for (const [number, reading] of numbering)
      memory[areas.NUMBERINGS + index * NUMBERS + number] = readingNumber(reading)
  return words.length
}

function roleNumbers(text: string): number[] {
  const role = rolesByName.get(text)
  const isParent = Number(parents.has(text))
  if (role === undefined) return [0, 0, 0, 0, 0, isParent]
  const { field, reading, rank, numbering, condition } = role
  return [
    readings.indexOf(reading) + 1,
    columnOf(field),
    rank,
    Object.keys(numberings).indexOf(numbering),
    condition === undefined ? 0 : conditions.indexOf(condition) + 1,
    isParent,
  ]
}

type Reading = typeof levelsByName extends ReadonlyMap<string, infer Value> ? Value : never

function readingNumber(reading: Reading | undefined): number {
  return reading === undefined ? 0 : (levels.indexOf(reading.level) + 1) | (reading.isExact ? EXACT : 0)
}
