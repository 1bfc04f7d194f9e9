import { type ClientRequest, get } from 'node:http'

/** Where a project is read. */
export interface ReadTarget {
  readonly queryUrl: string
  readonly readKey: string
}

interface ViewersOptions {
  readonly count: number
  /** In the query language. */
  readonly query?: string
  /** Gets what arrives. Without it, nothing is parsed. */
  readonly onText?: (text: string) => void
  /** Whether they read. The kernel takes some megabytes for one that does not. */
  readonly reads?: boolean
}

/** Connections that follow the tail of a project. @returns closes them */
export async function openViewers(
  { queryUrl, readKey }: ReadTarget,
  { count, query = '', onText = () => undefined, reads = true }: ViewersOptions,
): Promise<() => void> {
  const open = (): Promise<ClientRequest> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${readKey}` }
      const url = `${queryUrl}/v1/query/tail?query=${encodeURIComponent(query)}`
      const request = get(url, { headers, agent: false }, (response) => {
        response.on('error', () => undefined)
        if (response.statusCode !== 200) return reject(new Error(`a tail got ${response.statusCode}`))
        if (reads) response.setEncoding('utf8').on('data', onText)
        return resolve(request)
      })
      request.on('error', reject)
    })
  const requests = await Promise.all(Array.from({ length: count }, open))
  return () => {
    for (const request of requests) request.destroy()
  }
}
