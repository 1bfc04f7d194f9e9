import { expect, it } from 'vitest'
import { mergeMetrics } from '../src/copies.ts'
import { Metrics } from '../src/metrics.ts'

const text = (samples: string): string => `# HELP a A.\n# TYPE a counter\n${samples}`
const names = (lines: string): string[] => lines.split('\n').filter((line) => /^\w/.test(line))

it('the merged metrics of several processes have the samples of each, together, and with a label of their own', async () => {
  const merged = mergeMetrics([
    text('a 1\n\n# HELP b B.\n# TYPE b gauge\nb{x="{a}",y="2"} 2\n'),
    text('a 3\n\n# HELP b B.\n# TYPE b gauge\n\n# HELP c C.\n# TYPE c gauge\nc NaN\n'),
  ])
  expect(merged).toBe(`${text('a{process="1"} 1\na{process="2"} 3')}
# HELP b B.
# TYPE b gauge
b{process="1",x="{a}",y="2"} 2
# HELP c C.
# TYPE c gauge
c{process="2"} NaN
`)
  const page = await new Metrics({ app: 'api', version: '1' }).page.text()
  expect(names(mergeMetrics([page, page]))).toHaveLength(2 * names(page).length)
})
