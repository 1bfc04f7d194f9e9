import { execFile } from 'node:child_process'

const clientUrl = new URL('../../src/index.ts', import.meta.url).href
const imports = `import { SluiceClient } from '${clientUrl}'`

/** Runs a program in a process of its own. It has `SluiceClient`. */
export function runProgram(program: string): Promise<{ readonly code: unknown; readonly stdout: string }> {
  const args = ['--input-type=module', '--eval', `${imports}\n${program}`]
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, stdout) => resolve({ code: error?.code ?? 0, stdout }))
  })
}
