export const raise = (error: unknown): never => {
  throw error
}

/** An object with one member, which throws when it is read. */
export const throwing = (property: string, error: unknown = new Error('no')): object =>
  Object.defineProperty({}, property, { get: () => raise(error), enumerable: true })
