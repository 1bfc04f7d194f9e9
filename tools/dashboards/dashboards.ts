// The dashboards of Grafana, as lists of panels. `npm run docs` writes their JSON to deploy/grafana/dashboards, and
// test/documents.test.ts checks that it is current.
import { api } from './api.ts'
import { grafanaDashboard } from './grafana.ts'
import { overview } from './overview.ts'
import type { Dashboard } from './panels.ts'
import { workers } from './workers.ts'

export const dashboards: readonly Dashboard[] = [overview, api, workers]

/** The files of the dashboards, by their paths from the root. */
export function dashboardFiles(): ReadonlyMap<string, string> {
  return new Map(
    dashboards.map((dashboard) => [
      `deploy/grafana/dashboards/${dashboard.uid}.json`,
      `${JSON.stringify(grafanaDashboard(dashboard), null, 2)}\n`,
    ]),
  )
}
