import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { encodeBody } from '../../src/send.ts'

const entriesOf = (characters: number) => {
  const json = `{"level":"info","message":"${'é'.repeat(characters)}"}`
  return [
    { json, bytes: 0, tag: undefined },
    { json, bytes: 0, tag: undefined },
  ]
}
const large = entriesOf(2_000)
const text = `{"logs":[${large.map(({ json }) => json).join(',')}]}`

afterEach(() => void vi.unstubAllGlobals())

describe('a body is compressed', () => {
  test('with zstd where the runtime has it', async () => {
    const { bytes, encoding } = await encodeBody(large, 'auto')
    expect(encoding).toBe('zstd')
    expect(zstdDecompressSync(bytes).toString()).toBe(text)
  })

  test('with gzip if it is chosen', async () => {
    const { bytes, encoding } = await encodeBody(large, 'gzip')
    expect(encoding).toBe('gzip')
    expect(gunzipSync(bytes).toString()).toBe(text)
  })

  test.each([
    ['an older Node', { getBuiltinModule: undefined }],
    ['a runtime without the modules of Node', undefined],
  ])('with gzip in %s', async (_name, process) => {
    vi.stubGlobal('process', process)
    const { bytes, encoding } = await encodeBody(large, 'auto')
    expect(encoding).toBe('gzip')
    expect(gunzipSync(bytes).toString()).toBe(text)
  })
})

describe('a body is not compressed', () => {
  test('if it fits into a packet', async () => {
    expect((await encodeBody(entriesOf(10), 'auto')).encoding).toBeUndefined()
  })

  test('if compression is switched off', async () => {
    const { bytes, encoding } = await encodeBody(large, 'none')
    expect(encoding).toBeUndefined()
    expect(new TextDecoder().decode(bytes)).toBe(text)
  })
})
