export const unpackedRedis: string
export const howToInstallRedis: string
export function findProgram(path: string | undefined, ...names: string[]): string | undefined
export function missingProgram(
  platform: NodeJS.Platform,
  path: string | undefined,
  unpacked?: string,
): string | undefined
