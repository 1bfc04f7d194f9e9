import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, copyFile, mkdtemp, rename, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { StoringApi } from './storing-api.ts'

const program = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

let api: StoringApi
let folder = ''
beforeEach(async () => {
  api = new StoringApi()
  await api.start()
  folder = await mkdtemp(join(tmpdir(), 'sluice-follow-'))
})
afterEach(async () => {
  await api.stop()
  await rm(folder, { recursive: true })
})

function start(log: string): ChildProcess {
  const args = [program, 'send', '--follow', log, '--state', join(folder, 'state.json'), '--timezone', 'UTC']
  return spawn(process.execPath, args, {
    env: { SLUICE_API_URL: api.url, SLUICE_API_KEY: 'slk_test' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** Two thirds of the records have one line, and the others a stack trace. */
const record = (number: number): string =>
  `2026-11-20 10:00:00 ERROR record ${number}\n${number % 3 === 0 ? `\tat a.B.c${number}(B.java:1)\n` : ''}`

test(
  'no record is lost and none is stored twice, although the process is killed again and again while it sends',
  { timeout: 120_000 },
  async () => {
    const log = join(folder, 'app.log')
    let written = 0
    const write = async (count: number): Promise<void> => {
      const texts = Array.from({ length: count }, () => record((written += 1)))
      await appendFile(log, texts.join(''))
    }
    await write(500)
    for (let kill = 1; kill <= 8; kill += 1) {
      const child = start(log)
      const storedBefore = api.requests
      // Each process sends something, so that each kill is in the middle of the work.
      while (api.requests < storedBefore + 2) await sleep(1)
      await write(150)
      if (kill % 4 === 0) {
        await rename(log, `${log}.${20 - kill}`)
        await write(50)
      }
      await sleep((kill * 37) % 200)
      child.kill('SIGKILL')
      await once(child, 'exit')
      await write(100)
      if (kill % 6 === 5) {
        await copyFile(log, `${log}.${40 - kill}`)
        await truncate(log)
        await write(30)
      }
    }
    const child = start(log)
    while (api.stored.length < written) await sleep(20)
    child.kill('SIGTERM')
    const [code] = (await once(child, 'exit')) as [number | null]
    expect(code).toBe(0)

    const numbers = api.stored.map(({ message }) => Number(/^record (\d+)$/.exec(message)?.[1]))
    expect(numbers.toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: written }, (_, index) => index + 1),
    )
    for (const { message, stack } of api.stored) {
      const number = Number(message.slice('record '.length))
      expect(stack).toBe(number % 3 === 0 ? `\tat a.B.c${number}(B.java:1)` : undefined)
    }
    // Otherwise the kills have proved nothing.
    expect(api.repeated).toBeGreaterThan(0)
    expect(api.lostAnswers).toBeGreaterThan(0)
  },
)
