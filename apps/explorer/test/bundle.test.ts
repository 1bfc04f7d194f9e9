import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { beforeAll, expect, it } from 'vitest'
import { buildExplorer } from '../build.mjs'

const dist = fileURLToPath(new URL('../dist/', import.meta.url))
/** Both pages. On a slow connection of 1 Mbit/s it takes less than half a second. */
const SCRIPT_BYTES_MAX = 48 * 1024

beforeAll(() => buildExplorer())

it('has a small script', () => {
  const scripts = readdirSync(dist).filter((name) => name.endsWith('.js'))
  expect(scripts).toEqual([expect.stringMatching(/^main-\w{8}\.js$/)])
  for (const name of scripts)
    expect(gzipSync(readFileSync(dist + name)).length).toBeLessThan(SCRIPT_BYTES_MAX)
})

it('has a page without a script or style of its own, which names files that exist', () => {
  const html = readFileSync(`${dist}index.html`, 'utf8')
  expect(html).not.toMatch(/<style|style=|<script(?![^>]*src=)|\son\w+=/)
  for (const [, path = ''] of html.matchAll(/(?:src|href)="\/([^"]+)"/g))
    expect(readdirSync(dist)).toContain(path)
})
