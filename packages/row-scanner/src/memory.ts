// How JavaScript reads what `assembly/` has left in the scanner's memory.

/** The words of a text that spaces separate. */
export type Words<Text extends string> = Text extends `${infer First} ${infer Rest}`
  ? First | Words<Rest>
  : Text

export function wordsOf<Text extends string>(text: Text): Words<Text>[] {
  return text.split(' ') as Words<Text>[]
}

/** Reads objects that follow one another. @param names of the numbers of an object, in their order */
export function numbersReader<Text extends string>(names: Text) {
  const list = wordsOf(names)
  return (memory: Buffer, start: number, count: number): Record<Words<Text>, number>[] => {
    const all: Record<Words<Text>, number>[] = []
    for (let at = start; all.length < count;) {
      const numbers = {} as Record<Words<Text>, number>
      for (const name of list) {
        numbers[name] = memory.readInt32LE(at)
        at += 4
      }
      all.push(numbers)
    }
    return all
  }
}

/** Reads a string of the compiler: its length in bytes is before it. */
export function textAt(memory: Buffer, at: number): string {
  return memory.toString('utf16le', at, at + memory.readInt32LE(at - 4))
}
