// Loaded with `node --import` before the simulator. Changes one file of the project when it is loaded.
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import { mutants, mutate, pathOf } from './mutants.ts'

const mutant = mutants[Number(process.env['SLUICE_MUTANT'])]
if (mutant === undefined) throw new Error('SLUICE_MUTANT must be the number of a mutant')
const url = pathToFileURL(pathOf(mutant)).href

registerHooks({
  load: (loadedUrl, context, nextLoad) => {
    const loaded = nextLoad(loadedUrl, context)
    return loadedUrl === url ? { ...loaded, source: mutate(mutant) } : loaded
  },
})
