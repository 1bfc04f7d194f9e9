import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const folder = new URL('../../deploy/grafana/dashboards/', import.meta.url)

interface Position {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}

interface GrafanaPanel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: Position
  readonly datasource?: { readonly uid: string }
  readonly targets?: readonly {
    readonly expr: string
    readonly legendFormat: string
    readonly datasource: { readonly uid: string }
  }[]
}

interface GrafanaDashboard {
  readonly uid: string
  readonly panels: readonly GrafanaPanel[]
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] }
}

const files = readdirSync(folder)
const dashboards = files.map(
  (file) => JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as GrafanaDashboard,
)

const overlap = (a: Position, b: Position): boolean =>
  a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h

it('there are an overview and two detailed dashboards, in files of their names', () => {
  expect(files.toSorted()).toEqual(['sluice-api.json', 'sluice-overview.json', 'sluice-workers.json'])
  expect(dashboards.map(({ uid }) => `${uid}.json`)).toEqual(files)
})

describe.each(dashboards.map((dashboard) => [dashboard.uid, dashboard] as const))(
  '%s',
  (_uid, { panels, templating }) => {
    const graphs = panels.filter(({ type }) => type !== 'row')

    it('has a variable for the data source, and every query uses it', () => {
      expect(templating.list[0]).toMatchObject({ name: 'datasource', type: 'datasource' })
      const sources = graphs.flatMap(({ datasource, targets = [] }) => [
        datasource?.uid,
        ...targets.map((target) => target.datasource.uid),
      ])
      expect(sources.length).toBeGreaterThan(20)
      expect(new Set(sources)).toEqual(new Set(['${datasource}']))
    })

    it('has panels with a title, a description and unique ids', () => {
      for (const { title, description = '' } of graphs) {
        expect(title).not.toBe('')
        expect(description).toMatch(/\.$/)
      }
      expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    })

    it('has no panels that overlap or are wider than the page', () => {
      for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
      const overlapping = panels.filter((panel) =>
        panels.some((other) => other !== panel && overlap(panel.gridPos, other.gridPos)),
      )
      expect(overlapping).toEqual([])
    })

    it('aggregates over instances, and selects the installation', () => {
      for (const { expr, legendFormat } of graphs.flatMap(({ targets = [] }) => targets)) {
        expect(expr).toMatch(/^(?:sum|max|min|histogram_quantile)\b/)
        expect(legendFormat).not.toContain('instance')
        const selectors = expr.match(/\b(?:sluice|nodejs|process)_\w+(?:\{[^}]*\})?/g) ?? []
        expect(selectors.length).toBeGreaterThan(0)
        for (const selector of selectors) expect(selector).toContain('{job="$job"')
      }
    })
  },
)
