/** Reads a field of the text that Redis returns for INFO. Undefined if the text does not have the field. */
export function redisInfoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]
}
