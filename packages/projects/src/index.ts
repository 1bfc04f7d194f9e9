export * from './api-key.ts'
export * from './key-record.ts'
export * from './limits.ts'
export * from './registry.ts'
