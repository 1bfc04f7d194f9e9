import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { runProgram } from './programs.ts'
import { Sources } from './sources.ts'

const IMAGE = 'node:26-bookworm-slim'
const DOCKER_DEADLINE_MS = 30_000

function hasImage(): boolean {
  try {
    execFileSync('docker', ['image', 'inspect', IMAGE], { stdio: 'ignore', timeout: DOCKER_DEADLINE_MS })
    return true
  } catch {
    return false
  }
}

describe.skipIf(!hasImage())(`a Docker engine, if it has ${IMAGE}`, () => {
  const sources = Sources.use()

  /** Runs a program in a container that sends its output with the driver `splunk`. */
  async function runWithDriver(service: string, program: string, ...options: string[]): Promise<void> {
    const { apiUrl, apiKey } = sources.installation
    const driver =
      `run --rm --log-driver splunk --log-opt splunk-url=${apiUrl} --log-opt splunk-token=${apiKey} ` +
      `--log-opt splunk-format=json --log-opt tag={{.Name}} --log-opt labels=service --label service=${service}`
    const { code, output } = await runProgram(
      ['docker', ...driver.split(' '), ...options, IMAGE, 'node', '-e', program],
      {},
      { deadlineMs: DOCKER_DEADLINE_MS },
    )
    if (code !== 0) throw new Error(output)
  }

  it('sends lines with the driver splunk, as messages or with the fields of their JSON', async () => {
    const program = `
      console.log('text')
      console.error(JSON.stringify({ level: 'warn', message: 'fields', orderId: 4711 }))`
    await runWithDriver('docker-driver', program, '--name', 'sluice-docker-driver')
    const entries = await sources.entriesOf('docker-driver', 2)
    const origin = { tag: 'sluice-docker-driver', host: expect.any(String) as unknown }
    expect(entries.toSorted((a, b) => (a.level < b.level ? -1 : 1))).toMatchObject([
      { level: 'log', message: 'text', metadata: { ...origin, source: 'stdout' } },
      { level: 'warn', message: 'fields', metadata: { ...origin, source: 'stderr', orderId: 4711 } },
    ])
  })
})
