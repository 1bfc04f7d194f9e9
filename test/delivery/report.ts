/** Prints a time that a test measured. No test asserts it, because it depends on how busy the machine is. */
export function report(text: string): void {
  process.stdout.write(`${text}\n`)
}
