import { expect, it } from 'vitest'
import { rows } from '../../tools/dashboards/rows.ts'

it.each(rows.map(({ title, panels }) => [title, panels] as const))(
  'the row %s aggregates over instances, and selects the installation',
  (_title, panels) => {
    for (const { expr, legend } of panels.flatMap((panel) => panel.queries)) {
      expect(expr).toMatch(/^(?:sum|max|min|histogram_quantile)\b/)
      expect(legend).not.toContain('instance')
      const selectors = expr.match(/\b(?:sluice|nodejs|process)_\w+(?:\{[^}]*\})?/g) ?? []
      expect(selectors.length).toBeGreaterThan(0)
      for (const selector of selectors) expect(selector).toContain('{job="$job"')
    }
  },
)
