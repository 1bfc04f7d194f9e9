import { officialImages } from '@sluice/harness/container-services'
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

const root = new URL('../../', import.meta.url)
const read = (path: string): Promise<string> => readFile(new URL(path, root), 'utf8')

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>
}

/** The folders of packages, and of the workspace packages that they depend on, relative to the root. */
async function foldersOf(folders: readonly string[], found = new Set<string>()): Promise<Set<string>> {
  for (const folder of folders) {
    if (found.has(folder)) continue
    found.add(folder)
    const { dependencies = {} } = JSON.parse(await read(`${folder}/package.json`)) as Manifest
    const own = Object.keys(dependencies).filter((name) => name.startsWith('@sluice/'))
    await foldersOf(
      own.map((name) => `packages/${name.slice('@sluice/'.length)}`),
      found,
    )
  }
  return found
}

it('the Dockerfile copies the manifests of exactly the packages that the images need', async () => {
  const dockerfile = await read('Dockerfile')
  const copied = [...dockerfile.matchAll(/^COPY (\S+)\/package\.json \1\/$/gm)].map(([, folder]) => folder)
  const needed = await foldersOf(['apps/api', 'apps/cli', 'apps/worker'])
  expect(new Set(copied)).toEqual(needed)
})

it('Compose, CI and the container tests use the same images', async () => {
  const [compose, ci, dockerfile] = await Promise.all(
    ['docker-compose.yml', '.ci/run', 'Dockerfile'].map(read),
  )
  const [, node = ''] = /^ARG NODE_IMAGE=(\S+)$/m.exec(dockerfile ?? '') ?? []
  expect(node).toMatch(/^node:/)
  for (const image of Object.values(officialImages)) expect(compose).toContain(`:-${image}}`)
  for (const image of [node, ...Object.values(officialImages)]) expect(ci).toContain(image)
})
