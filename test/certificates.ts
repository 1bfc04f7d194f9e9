import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Files in PEM form. */
export interface Certificates {
  readonly caFile: string
  readonly certificateFile: string
  readonly keyFile: string
}

const execute = promisify(execFile)
const RUN_TIMEOUT_MS = 20_000
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

/**
 * Makes an authority that nobody knows, and its certificate for a server at 127.0.0.1. Needs openssl on the PATH.
 *
 * @param folder is there, and gets the files
 */
export async function makeCertificates(folder: string): Promise<Certificates> {
  const path = (name: string): string => join(folder, name)
  const [caFile, certificateFile, keyFile] = [path('ca.pem'), path('server.pem'), path('server-key.pem')]
  const names = path('names.cnf')
  await writeFile(names, 'subjectAltName = IP:127.0.0.1\n')
  const ca = ['-subj', '/CN=Test authority', '-keyout', path('ca-key.pem'), '-out', caFile]
  await openssl('req', '-x509', ...KEY, '-days', '2', ...ca)
  const request = path('server.csr')
  await openssl('req', ...KEY, '-subj', '/CN=ClickHouse', '-keyout', keyFile, '-out', request)
  const authority = ['-CA', caFile, '-CAkey', path('ca-key.pem'), '-CAcreateserial']
  await openssl(
    'x509',
    '-req',
    '-in',
    request,
    ...authority,
    '-days',
    '2',
    '-extfile',
    names,
    '-out',
    certificateFile,
  )
  return { caFile, certificateFile, keyFile }
}

async function openssl(...args: string[]): Promise<void> {
  await execute('openssl', args, { timeout: RUN_TIMEOUT_MS })
}
