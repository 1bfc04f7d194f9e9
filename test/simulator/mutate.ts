// Loaded with `node --import` before the simulator. Changes one file of the project when it is loaded.
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { mutants } from './mutants.ts'

const mutant = mutants[Number(process.env['SLUICE_MUTANT'])]
if (mutant === undefined) throw new Error('SLUICE_MUTANT must be the number of a mutant')
const { file, find, replace } = mutant
const target = pathToFileURL(resolve(import.meta.dirname, '../..', file)).href

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context)
    if (url !== target) return loaded
    const source = String(loaded.source)
    if (source.split(find).length !== 2) throw new Error(`${file} must contain this text once: ${find}`)
    return { ...loaded, source: source.replace(find, () => replace) }
  },
})
