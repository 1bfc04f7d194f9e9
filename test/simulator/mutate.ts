// Loaded with `node --import` before the simulator. Changes one file of the project when it is loaded.
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { mutants } from './mutants.ts'

const mutant = mutants[Number(process.env['SLUICE_MUTANT'])]
if (mutant === undefined) throw new Error('SLUICE_MUTANT must be the number of a mutant')
const { file, find, replace } = mutant
const target = resolve(import.meta.dirname, '../..', file)
const targetUrl = pathToFileURL(target).href

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context)
    if (url !== targetUrl) return loaded
    const source = readFileSync(target, 'utf8')
    if (source.split(find).length !== 2) throw new Error(`${file} must contain this text once: ${find}`)
    return { ...loaded, source: source.replace(find, () => replace) }
  },
})
