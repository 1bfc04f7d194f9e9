declare module 'cluster-key-slot' {
  /** @returns the hash slot of a key, 0 to 16,383 */
  export default function calculateSlot(key: string | Buffer): number
}
