// Ends `npm start` before the download of the dependencies if it needs a program that only the user can install. Requires only Node 20.
import { missingProgram } from '../packages/local/src/redis-program.mjs'

const problem = missingProgram(process.platform, process.env.PATH)
if (problem !== undefined) {
  console.log(`✗ ${problem}`)
  process.exit(1)
}
