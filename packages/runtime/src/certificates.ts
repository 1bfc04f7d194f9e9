import { readFileSync } from 'node:fs'
import { SettingsError } from './settings.ts'

/**
 * The certificates of authorities in a file, as PEM.
 *
 * @param setting the setting that names the file
 * @throws SettingsError when the file cannot be read, or holds none
 */
export function readCertificates(setting: string, file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown'
    throw new SettingsError(`${setting} cannot be read: ${reason}`)
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw new SettingsError(`${setting} holds no certificate in PEM form`)
}
