/** The members of a JSON object. */
export type Members = Record<string, unknown>

/**
 * Whether a value is an object with members, such as JSON.parse returns. Arrays are not, and neither is a number that was
 * parsed exactly: for JavaScript it is an object without a prototype.
 */
export function isPlainObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

/**
 * Sets a member like JSON.parse: the last of several values counts, and the first determines the place. An assignment to
 * `__proto__` would set the prototype.
 */
export function setMember(members: Members, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true })
  } else members[name] = value
}

/** Adds a member and replaces none: if the name is taken, a number after it makes it a new one. */
export function addMember(members: Members, name: string, value: unknown): void {
  let free = name
  for (let number = 2; Object.hasOwn(members, free); number += 1) free = `${name}_${number}`
  setMember(members, free, value)
}
