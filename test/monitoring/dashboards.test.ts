import { describe, expect, it } from 'vitest'
import { grafanaDashboard } from '../../tools/dashboards/grafana.ts'
import { dashboards } from '../../tools/dashboards/dashboards.ts'

interface GrafanaPanel {
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
}

describe.each(dashboards.map((dashboard) => [dashboard.uid, dashboard] as const))('%s', (_uid, dashboard) => {
  it('has no panels that overlap or are wider than the page', () => {
    const { panels } = grafanaDashboard(dashboard) as { panels: readonly GrafanaPanel[] }
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
      expect(x + w).toBeLessThanOrEqual(24)
      return Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)} ${y + Math.floor(cell / w)}`)
    })
    expect(new Set(cells).size).toBe(cells.length)
  })

  it('aggregates over instances, and selects the installation', () => {
    const queries = dashboard.rows.flatMap(({ panels }) => panels.flatMap((panel) => panel.queries))
    expect(queries.length).toBeGreaterThan(10)
    for (const { expr, legend } of queries) {
      expect(expr).toMatch(/^(?:sum|max|min|histogram_quantile)\b/)
      expect(legend).not.toContain('instance')
      const selectors = expr.match(/\b(?:sluice|nodejs|process)_\w+(?:\{[^}]*\})?/g) ?? []
      expect(selectors.length).toBeGreaterThan(0)
      for (const selector of selectors) expect(selector).toContain('{job="$job"')
    }
  })
})
