// The tables of this package, for the scanner: it has them in its memory.
export { isSynonym, levelsByName, mongoLevels, type Numbering, numberings } from './levels.ts'
export { parents, type Role, roles, rolesByName } from './names.ts'
export { environmentsByName } from './values.ts'
