import { afterAll, expect, it } from 'vitest'
import { buildTestApi } from '../support/test-api.ts'
import { Described, type Document } from './described.ts'

const api = buildTestApi()
const described = new Described((await api.app.inject('/openapi.json')).json<Document>())

afterAll(async () => {
  await api.close()
})

const key = { authorization: `Bearer ${api.key}`, 'dd-api-key': api.key }
it('documents each API of a shipper with its status and its body', async () => {
  const documented = Object.keys(described.document.paths).filter((path) => !/^\/(api\/)?v1|z$/.test(path))
  expect(documented).toContain('/elasticsearch/_bulk')
  for (const path of documented) {
    const operation = described.post(path)
    const [[type, { example: sent }] = ['', { example: undefined }]] = Object.entries(
      operation.requestBody?.content ?? {},
    )
    const { statusCode, headers, body } = await api.post(sent as object, {
      url: path,
      headers: { ...key, 'content-type': type },
    })
    const response = operation.responses[statusCode]
    expect(response).toBeDefined()
    const shown = response?.content['application/json']?.example
    expect(body === '' ? undefined : JSON.parse(body)).toEqual(shown)
    expect(
      body === '' ? [] : described.undescribed(operation, { status: statusCode, headers, body }),
    ).toEqual(path.startsWith('/elasticsearch') ? ['header x-elastic-product'] : [])
  }
  expect(api.queue.rows.map(({ message }) => message)).toEqual(documented.map(() => 'paid'))
})
