/**
 * Reads objects of `assembly/` that follow one another in the scanner's memory.
 *
 * @param names of the numbers of an object, in their order
 */
export function readNumbers<Name extends string>(
  memory: Buffer,
  start: number,
  count: number,
  names: readonly Name[],
): Record<Name, number>[] {
  const found: Record<Name, number>[] = []
  for (let at = start; found.length < count;) {
    const numbers = {} as Record<Name, number>
    for (const name of names) {
      numbers[name] = memory.readInt32LE(at)
      at += 4
    }
    found.push(numbers)
  }
  return found
}
