import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const source = fileURLToPath(new URL('../../deploy/systemd', import.meta.url))
/** Each with an instance, where the unit is a template. */
const units = ['sluice-api@0.service', 'sluice-worker@0.service', 'sluice-migrate.service', 'sluice.target']
/** By the scale of systemd: from 0, the best, to 10. What the units have, with systemd 252. */
const EXPOSURE_MAX = 1.5

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-units-'))
  cpSync(source, folder, { recursive: true })
  for (const unit of units) {
    const text = readFileSync(join(folder, unit.replace('@0', '@')), 'utf8')
    // Node may be elsewhere on this machine.
    writeFileSync(join(folder, unit), text.replace('/usr/bin/node', process.execPath))
  }
})
afterAll(() => rmSync(folder, { recursive: true }))

function analyze(args: readonly string[]): string {
  return execFileSync('systemd-analyze', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
}

/** What `systemd-analyze verify` reports about a unit of this folder. It also reports faults of units of the system. */
function faults(unit: string): string {
  const { stderr } = spawnSync('systemd-analyze', ['verify', `./${unit}`], { cwd: folder, encoding: 'utf8' })
  return stderr
    .split('\n')
    .filter((line) => line.includes('sluice'))
    .join('\n')
}

describe.runIf(spawnSync('systemd-analyze', ['--version']).status === 0)('systemd', () => {
  it.each(units)('finds no fault in %s', (unit) => {
    expect(faults(unit)).toBe('')
  })

  it('finds a fault in a unit with an unknown directive', () => {
    const text = readFileSync(join(folder, 'sluice-migrate.service'), 'utf8')
    writeFileSync(join(folder, 'sluice-wrong.service'), text.replace('MemoryMax=', 'MemoryMost='))
    expect(faults('sluice-wrong.service')).toContain('MemoryMost')
  })

  it.each(units.filter((unit) => unit.endsWith('.service')))('finds %s little exposed', (unit) => {
    const report = analyze(['security', '--offline=true', '--no-pager', `./${unit}`])
    const [line = '', exposure] = /Overall exposure level .*: ([\d.]+) .*/.exec(report) ?? []
    process.stdout.write(`${line}\n`)
    expect(Number(exposure)).toBeLessThanOrEqual(EXPOSURE_MAX)
  })
})
