export * from './entry.ts'
export * from './limits.ts'
