import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Command, examplePath, isInstalled, startProgram } from './programs.ts'
import { Sources } from './sources.ts'

/** Enough for several requests, and for several chunks in one. */
const LINES = 5_000

const sources = Sources.use()
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-shippers-'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

const shippers: readonly (readonly [program: string, args: () => readonly string[], stored: object])[] = [
  [
    'promtail',
    () => ['-config.expand-env', `-config.file=${examplePath('promtail/promtail.yml')}`],
    { level: 'warn' },
  ],
  [
    'filebeat',
    () => {
      const home = join(folder, 'filebeat')
      const paths = ['-c', examplePath('filebeat/filebeat.yml'), '--path.home', home]
      return [...paths, '--path.data', join(home, 'data'), '--strict.perms=false']
    },
    { level: 'log', metadata: { input: { type: 'log' } } },
  ],
]

describe.each(shippers)('%s', (program, args, stored) => {
  it.skipIf(!isInstalled(program))(
    'sends each line, also those from when the API was down, if it is on the PATH',
    async () => {
      const input = join(folder, `${program}.log`)
      const lines = Array.from({ length: LINES }, (_, i) => `warning line ${i} of ${LINES}\n`)
      await writeFile(input, lines.join(''))
      await sources.killApi()
      const command: Command = [program, ...args()]
      const files = { INPUT: input, POSITIONS: join(folder, `${program}.yml`) }
      const run = startProgram(command, { ...sources.environment(program), ...files })
      try {
        await sources.startApi()
        const [first] = await sources.entriesOf(program, LINES)
        expect(first).toMatchObject(stored)
      } finally {
        await run.stop()
      }
      expect(run.output()).not.toMatch(/panic|fatal/i)
    },
  )
})
