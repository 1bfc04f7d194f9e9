import { expect, it } from 'vitest'
import { defaultView, readView, type View, writeView } from '../src/view.ts'

it('writes nothing for the default, and reads it from nothing', () => {
  expect(writeView(defaultView)).toBe('/')
  expect(readView('')).toEqual(defaultView)
})

const read = (url: string): View => readView(new URL(url, 'http://a').search, url.split('?', 1)[0])

it('reads what it has written', () => {
  const view: View = {
    page: 'entries',
    query: 'level:error "a b" (x OR y) &=#?%+ü',
    from: '2026-11-24T10:00:00.000Z',
    until: '-5m',
    columns: ['service', 'http.status', 'odd, name', ','],
    facets: ['level', 'user.id'],
    zone: 'Asia/Kathmandu',
    selected: '01a21d18-06c6-7000-8000-000000002030',
    context: '01a21d18-06c6-7000-8000-000000002031',
    sameService: true,
    live: true,
    refreshSeconds: 30,
    group: '',
  }
  expect(read(writeView(view))).toEqual(view)
  expect(read(writeView({ ...view, columns: [], facets: [] }))).toEqual({
    ...view,
    columns: [],
    facets: [],
  })
})

it('has the pages as paths, with what concerns each', () => {
  const view: View = { ...defaultView, query: 'a', zone: 'UTC', group: 'REJECTED' }
  expect(writeView(view)).toBe('/?q=a&tz=UTC')
  expect(writeView({ ...view, page: 'pipeline' })).toBe('/pipeline?tz=UTC&group=REJECTED')
  expect(readView('?tz=UTC', '/pipeline')).toEqual({ ...defaultView, page: 'pipeline', zone: 'UTC' })
})

it('takes the default for what it does not understand', () => {
  expect(readView('?refresh=often&live=perhaps&unknown=1')).toEqual(defaultView)
  expect(readView('?refresh=-5')).toEqual(defaultView)
})
