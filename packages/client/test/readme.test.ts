import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { defaults } from '../src/options.ts'

test.each(Object.entries(defaults))('the README names the default of %s: %s', async (name, value) => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
  const [, stated] = new RegExp(`^\\| \`${name}\`\\s+\\| (\\S+)`, 'm').exec(readme) ?? []
  const shown = Number.isFinite(value) ? value.toLocaleString('en-US') : String(value)
  expect(stated?.replaceAll('`', '')).toBe(shown)
})
