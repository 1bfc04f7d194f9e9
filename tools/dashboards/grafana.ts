// The dashboards of Grafana, as lists of panels. `npm run docs` writes their JSON to deploy/grafana/dashboards, and
// test/documents.test.ts checks that it is current.
import { api } from './api.ts'
import { overview } from './overview.ts'
import type { Dashboard, Panel } from './panels.ts'
import { reading } from './reading.ts'
import { workers } from './workers.ts'

export const dashboards: readonly Dashboard[] = [overview, api, workers, reading]

const datasource = { type: 'prometheus', uid: '${datasource}' } as const

const WIDTH = 24
const STAT_HEIGHT = 4
const GRAPH = { w: 8, h: 8 } as const
/** Grafana names the queries of a panel A, B, C, … */
const FIRST_REF = 65

/** The files of the dashboards, by their paths from the root. */
export function dashboardFiles(): readonly (readonly [path: string, text: string])[] {
  return dashboards.map((dashboard) => [
    `deploy/grafana/dashboards/${dashboard.uid}.json`,
    `${JSON.stringify(grafanaDashboard(dashboard), null, 2)}\n`,
  ])
}

/** A dashboard in the form of Grafana 10 and later, which migrate it to their own when they import it. */
function grafanaDashboard({ uid, title, description, rows }: Dashboard): object {
  return {
    uid,
    title,
    description,
    tags: ['sluice'],
    schemaVersion: 39,
    version: 1,
    graphTooltip: 1,
    time: { from: 'now-3h', to: 'now' },
    refresh: '30s',
    links: [
      {
        type: 'dashboards',
        tags: ['sluice'],
        title: 'Sluice',
        asDropdown: false,
        keepTime: true,
        includeVars: true,
      },
    ],
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
    panels: layOut(rows),
  }
}

function layOut(rows: Dashboard['rows']): object[] {
  const panels: object[] = []
  let y = 0
  for (const { title, panels: members } of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title,
      gridPos: { x: 0, y, w: WIDTH, h: 1 },
      panels: [],
    })
    y += 1
    const isStats = members.every(({ kind }) => kind === 'stat')
    const { w, h } = isStats ? { w: Math.floor(WIDTH / members.length), h: STAT_HEIGHT } : GRAPH
    const perLine = Math.floor(WIDTH / w)
    for (const [index, panel] of members.entries()) {
      const gridPos = { x: (index % perLine) * w, y: y + Math.floor(index / perLine) * h, w, h }
      panels.push({ id: panels.length + 1, ...grafanaPanel(panel), gridPos })
    }
    y += Math.ceil(members.length / perLine) * h
  }
  return panels
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
