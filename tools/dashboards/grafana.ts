// The dashboard of Grafana, as rows of panels. `npm run docs` writes its JSON to deploy/grafana/dashboards, and test/documents.test.ts checks
// that it is current.
import type { Panel } from './panels.ts'
import { rows } from './rows.ts'

const datasource = { type: 'prometheus', uid: '${datasource}' } as const

const WIDTH = 24
const STAT_HEIGHT = 4
const GRAPH = { w: 8, h: 8 } as const
const ROWS_OPEN = 3
/** Grafana names the queries of a panel A, B, C, … */
const FIRST_REF = 65

export const dashboardPath = 'deploy/grafana/dashboards/sluice.json'

/** The dashboard in the form of Grafana 10 and later, which migrate it to their own when they import it. */
export function grafanaDashboard(): object {
  return {
    uid: 'sluice',
    title: 'Sluice',
    description: 'Whether entries are accepted, stored and can be queried, and why not.',
    tags: ['sluice'],
    schemaVersion: 39,
    version: 1,
    graphTooltip: 1,
    time: { from: 'now-3h', to: 'now' },
    refresh: '30s',
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
        {
          name: 'job',
          label: 'Installation',
          type: 'query',
          datasource,
          query: { query: 'label_values(sluice_build_info, job)', refId: 'job' },
          refresh: 2,
          sort: 1,
        },
      ],
    },
    panels: layOut(),
  }
}

/** Only the first rows are open: Grafana does not query the panels of the others. */
function layOut(): object[] {
  const laidOut: object[] = []
  let [id, y] = [0, 0]
  for (const [index, { title, panels }] of rows.entries()) {
    const collapsed = index >= ROWS_OPEN
    const row = {
      id: (id += 1),
      type: 'row',
      title,
      gridPos: { x: 0, y: (y += 1), w: WIDTH, h: 1 },
      collapsed,
    }
    const isStats = panels.every(({ kind }) => kind === 'stat')
    const { w, h } = isStats ? { w: Math.floor(WIDTH / panels.length), h: STAT_HEIGHT } : GRAPH
    const perLine = Math.floor(WIDTH / w)
    const placed: object[] = []
    for (const [place, panel] of panels.entries()) {
      const gridPos = { x: (place % perLine) * w, y: y + 1 + Math.floor(place / perLine) * h, w, h }
      placed.push({ id: (id += 1), ...grafanaPanel(panel), gridPos })
    }
    if (!collapsed) y += Math.ceil(panels.length / perLine) * h
    laidOut.push({ ...row, panels: collapsed ? placed : [] }, ...(collapsed ? [] : placed))
  }
  return laidOut
}

function grafanaPanel({ title, description, unit, kind, queries }: Panel): object {
  return {
    type: kind ?? 'timeseries',
    title,
    description,
    datasource,
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCodePoint(FIRST_REF + index),
      datasource,
      expr,
      legendFormat: legend,
      ...(kind === 'stat' && { instant: true }),
    })),
    fieldConfig: { defaults: { unit, ...(kind === undefined && { min: 0 }) }, overrides: [] },
    options:
      kind === 'stat'
        ? {
            reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
            colorMode: 'none',
            graphMode: 'none',
          }
        : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
  }
}
