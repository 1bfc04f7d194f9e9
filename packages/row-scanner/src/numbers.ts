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
  let at = start - 4
  return Array.from({ length: count }, () => {
    const numbers = {} as Record<Name, number>
    for (const name of names) numbers[name] = memory.readInt32LE((at += 4))
    return numbers
  })
}
