import { describe, expect, it } from 'vitest'
import { dashboards } from '../../tools/dashboards/grafana.ts'

describe.each(dashboards.map((dashboard) => [dashboard.uid, dashboard] as const))('%s', (_uid, dashboard) => {
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
