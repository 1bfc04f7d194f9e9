import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RecordedRequest {
  readonly parameters: Readonly<Record<string, string>>
  readonly body: string
}

/** A server that records its requests, and answers each with an empty body, as ClickHouse does if there are no rows. */
export async function startRecorder(): Promise<{
  readonly url: string
  readonly requests: readonly RecordedRequest[]
  stop(): Promise<void>
}> {
  const requests: RecordedRequest[] = []
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://recorder')
    let body = ''
    request.setEncoding('utf8').on('data', (part: string) => (body += part))
    request.on('end', () => {
      requests.push({ parameters: Object.fromEntries(searchParams), body })
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
