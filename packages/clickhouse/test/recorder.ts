import { HttpServer } from '@sluice/harness/http-server'

export interface RecordedRequest {
  readonly parameters: Readonly<Record<string, string>>
  readonly body: string
}

/** @returns the requests to the URL. Each gets an empty response, as from ClickHouse if there are no rows */
export async function recordRequests(
  send: (url: string) => Promise<unknown>,
): Promise<readonly RecordedRequest[]> {
  const requests: RecordedRequest[] = []
  const server = new HttpServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://recorder')
    let body = ''
    request.setEncoding('utf8').on('data', (part: string) => (body += part))
    request.on('end', () => {
      requests.push({ parameters: Object.fromEntries(searchParams), body })
      response.end()
    })
  })
  await server.listen()
  await send(server.url)
  await server.close()
  return requests
}
