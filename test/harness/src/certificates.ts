import { writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { generate } from 'selfsigned'

export interface Certificates {
  readonly caFile: string
  readonly certificateFile: string
  readonly keyFile: string
}

const kind = { keyType: 'ec', algorithm: 'sha256' } as const

/** Creates the certificate of a server with this name or address, signed by a private authority, in a folder that exists. */
export async function makeCertificates(folder: string, host: string): Promise<Certificates> {
  const ca = await generate([{ name: 'commonName', value: 'Test authority' }], {
    ...kind,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, critical: true },
    ],
  })
  const altName = isIP(host) === 0 ? ({ type: 2, value: host } as const) : ({ type: 7, ip: host } as const)
  const server = await generate([{ name: 'commonName', value: 'Server' }], {
    ...kind,
    ca: { key: ca.private, cert: ca.cert },
    extensions: [{ name: 'subjectAltName', altNames: [altName] }],
  })
  const write = async (name: string, pem: string): Promise<string> => {
    const file = join(folder, name)
    await writeFile(file, pem)
    return file
  }
  return {
    caFile: await write('ca.pem', ca.cert),
    certificateFile: await write('server.pem', server.cert),
    keyFile: await write('server-key.pem', server.private),
  }
}
