/** Prints what a test has measured. A test does not assert times that depend on how busy the machine is. */
export function printFigure(line: string): void {
  process.stdout.write(`${line}\n`)
}
