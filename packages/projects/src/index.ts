export * from './api-key.ts'
export * from './registry.ts'
