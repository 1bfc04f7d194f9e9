import { spawn } from 'node:child_process'

export interface ChildResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  readonly elapsedMs: number
}

const clientUrl = new URL('../../src/index.ts', import.meta.url).href
const spoolUrl = new URL('../../src/spool/disk-spool.ts', import.meta.url).href

/** Runs a program in a process of its own. It has `SluiceClient` and `DiskSpool`. */
export async function runProgram(program: string): Promise<ChildResult> {
  const child = startProgram(program)
  const startedAtMs = performance.now()
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()))
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, stdout, stderr, elapsedMs: performance.now() - startedAtMs }
}

function startProgram(program: string) {
  const imports = `import { SluiceClient } from '${clientUrl}'; import { DiskSpool } from '${spoolUrl}';`
  return spawn(process.execPath, ['--input-type=module', '--eval', `${imports}\n${program}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
