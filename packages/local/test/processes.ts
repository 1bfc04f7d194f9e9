import { execFileSync } from 'node:child_process'
import { expect, vi } from 'vitest'

interface Listed {
  readonly pid: number
  readonly parent: number
  readonly command: string
}

function listProcesses(): Listed[] {
  const output = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,ppid=,command='], { encoding: 'utf8' })
  return output.split('\n').flatMap((line) => {
    const [, pid, parent, command = ''] = /^ *(\d+) +(\d+) (.*)$/.exec(line) ?? []
    return pid === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), command }]
  })
}

/** The processes that a process has started, directly or not, with their guards. */
export function descendantsOf(pid: number | undefined): Listed[] {
  const all = listProcesses()
  const found: Listed[] = []
  let parents = [pid]
  while (parents.length > 0) {
    const children = all.filter(({ parent }) => parents.includes(parent))
    found.push(...children)
    parents = children.map((child) => child.pid)
  }
  return found.filter(({ command }) => !command.startsWith('ps '))
}

/** Waits until none of these processes is left. @returns true */
export async function allEnd(processes: readonly Listed[]): Promise<true> {
  await vi.waitFor(() => {
    const left = listProcesses().filter((each) =>
      processes.some(({ pid, command }) => pid === each.pid && command === each.command),
    )
    expect(left).toEqual([])
  })
  return true
}
