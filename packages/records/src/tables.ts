// The tables of this package, for the scanner: it has them in its memory.
export { levelsByName, numberings } from './levels.ts'
export { conditions, parents, readings, rolesByName, wrappers } from './names.ts'
export { environmentsByName } from './values.ts'
