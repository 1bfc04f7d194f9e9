import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { Problem } from './api.ts'
import { niceMax } from './bars.ts'
import * as pipeline from './pipeline.ts'
import { duration, wallTime } from './times.ts'
import { EntryText, Popover, useShared } from './ui.tsx'
import { count, plural } from './visible-text.ts'

const HISTORY_MS = 900_000

const rate = (value: number): string =>
  value > 0 && value < 9.95 ? value.toFixed(1) : count(Math.round(value))
const seconds = (value: number): string => duration(1000 * value)
const megabytes = (bytes: number): string => `${count(Math.round(bytes / 1e6))} MB`
const known = (value: number | null | undefined, format: (value: number) => string): string =>
  typeof value === 'number' ? format(value) : '–'

type Figure = readonly [name: pipeline.FigureName, label: string, level: string]
interface Tile {
  readonly title: string
  readonly format: (value: number) => string
  /** The least that the chart shows: what is normal looks calm. */
  readonly least: number
  readonly figures: readonly Figure[]
}
const throughput: readonly Figure[] = [
  ['accepted', 'accepted', 'info'],
  ['stored', 'stored', 'success'],
]
const refused: readonly Figure[] = [
  ['rejected', 'rejected', 'warn'],
  ['dead_lettered', 'dead letters', 'error'],
]
const delays: readonly Figure[] = [
  ['oldest_age_s', 'oldest', 'warn'],
  ['lag_s', 'to storage', 'info'],
  ['complete_behind_s', 'complete', 'success'],
]
const tiles: readonly Tile[] = [
  { title: 'Entries per second', format: rate, least: 10, figures: throughput },
  { title: 'Refused per second', format: rate, least: 10, figures: refused },
  { title: 'Backlog', format: count, least: 1000, figures: [['backlog', 'entries wait', 'debug']] },
  { title: 'Delay', format: seconds, least: 2, figures: delays },
]

/** Figures with their last minutes. The slider chooses the time of the numbers. */
function Tiles({ state }: { state: pipeline.PipelineAnswer }) {
  const { zone } = useShared().explorer.view.value
  const agoMs = useSignal(0)
  const nowMs = Date.parse(state.at)
  const fromMs = nowMs - HISTORY_MS
  const atMs = nowMs - agoMs.value
  const point = state.history.findLast(({ at }) => at <= atMs)
  const figures = agoMs.value === 0 ? state : point?.figures
  const { time } = wallTime(atMs, zone)
  return (
    <>
      <div class="tiles">
        {tiles.map(({ title, format, least, figures: shown }) => {
          const values = state.history.flatMap((each) => shown.map(([name]) => each.figures[name] ?? 0))
          const max = niceMax(Math.max(least, ...values))
          return (
            <section class="block" key={title}>
              <h2>
                {title} <span class="hint">up to {format(max)}</span>
              </h2>
              <p class="figures">
                {shown.map(([name, label, level]) => (
                  <span class={`level level-${level}`} key={name}>
                    <b>{known(figures?.[name], format)}</b>
                    <span>
                      <span class="swatch" /> {label}
                    </span>
                  </span>
                ))}
              </p>
              <svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
                {shown.toReversed().map(([name, , level]) => (
                  <path
                    class={`level-${level}`}
                    key={name}
                    d={pipeline.linePath(state.history, name, fromMs, nowMs, max)}
                  />
                ))}
                {agoMs.value > 0 && <path d={`M${1 - agoMs.value / HISTORY_MS} 0V1`} />}
              </svg>
            </section>
          )
        })}
      </div>
      <label class="moment">
        <span class="hint">Last 15 minutes</span>
        <input
          type="range"
          min={-HISTORY_MS}
          max={0}
          step={5000}
          value={-agoMs.value}
          aria-label="Time of the figures"
          aria-valuetext={time}
          onInput={({ currentTarget }) => (agoMs.value = -Number(currentTarget.value))}
        />
        <span class="number">{agoMs.value === 0 ? `now, ${time}` : time}</span>
      </label>
    </>
  )
}

type Column<Item> = readonly [name: string, cell: (item: Item) => ComponentChildren, hint?: string]
interface TableProps<Item> {
  readonly title: string
  readonly note: string
  readonly columns: readonly Column<Item>[]
  readonly items: readonly Item[]
}
const Table = <Item,>({ title, note, columns, items }: TableProps<Item>) => (
  <section class="block">
    <h2>
      {title} <span class="hint">{note}</span>
    </h2>
    <table>
      <thead>
        <tr>
          {columns.map(([name, , hint]) => (
            <th scope="col" key={name} title={hint}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {items.map((item, index) => (
          <tr key={index}>
            {columns.map(([name, cell]) => (
              <td key={name}>{cell(item)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </section>
)

const rateOf = (name: string) => (item: { readonly rates: Readonly<Record<string, number>> | null }) =>
  known(item.rates?.[name], rate)
const Mark = ({ level, text }: { level: string; text: string }) => (
  <span class={`level level-${level}`}>
    <span class="swatch" /> <EntryText text={text} oneLine />
  </span>
)

const shardColumns: readonly Column<pipeline.Shard>[] = [
  ['Shard', (shard) => shard.shard],
  [
    'State',
    ({ is_reachable: is }) => <Mark level={is ? 'success' : 'error'} text={is ? 'answers' : 'silent'} />,
  ],
  ['Backlog', ({ entries }) => count(entries), 'Entries that are not stored yet'],
  ['Oldest', ({ oldest_age_s: ageS }) => seconds(ageS), 'How long the oldest of them has waited'],
  ['Waiting', ({ waiting }) => count(waiting), 'Chunks that no worker has'],
  ['In flight', ({ in_hand: chunks }) => count(chunks), 'Chunks that workers have'],
  ['Delayed', ({ delayed }) => count(delayed), 'Chunks that wait for a worker of their version'],
  ['Failed', ({ failed }) => (failed === 0 ? 0 : <Mark level="error" text={count(failed)} />)],
  ['Accepted/s', rateOf('accepted')],
  ['Stored/s', rateOf('stored')],
  ['Dead letters/s', rateOf('dead_lettered')],
]

function stateOf({ is_silent: isSilent, not_ready: notReady }: pipeline.Process) {
  if (isSilent) return <Mark level="warn" text="silent: frozen or dead" />
  return notReady === undefined ? (
    <Mark level="success" text="ready" />
  ) : (
    <Mark level="error" text={notReady} />
  )
}
const processColumns: readonly Column<pipeline.Process>[] = [
  ['Process', ({ role, host, pid }) => <EntryText text={`${role} ${host}/${pid}`} oneLine />],
  ['State', stateOf],
  ['Version', ({ version }) => version],
  ['Up for', ({ uptime_s: upS }) => seconds(upS)],
  ['In flight', ({ chunks_held: chunks }) => known(chunks, count), 'Chunks that the worker has'],
  ['Accepted/s', rateOf('accepted')],
  ['Rejected/s', rateOf('rejected'), 'Requests, and invalid entries'],
  ['Stored/s', rateOf('stored')],
  ['Dead letters/s', rateOf('dead_lettered')],
]

const nameOf = (choice: pipeline.RetryChoice): string =>
  'id' in choice ? choice.id : `${choice.code} ${choice.reason}`.trim()

/** Asks before it acts. */
function Retry({ label, choice, rows }: { label: string; choice: pipeline.RetryChoice; rows: number }) {
  const { explorer, panel } = useShared()
  const act = (): void => {
    panel.value = ''
    explorer.api
      .post('dead-letters/retry', choice)
      .then(() => explorer.say('A worker begins within seconds'))
      .catch((error: unknown) => explorer.say(Problem.of(error).message))
  }
  return (
    <Popover name={`retry ${nameOf(choice)}`} label={`${label} ${nameOf(choice)}`} button={label}>
      <h2>Insert {plural(rows, 'row', 'rows')} again?</h2>
      <p class="hint">
        A worker does it, one by one. What ClickHouse accepts now is stored once, and is no dead letter any
        more.
      </p>
      <div class="actions">
        <button type="button" class="btn primary" onClick={act}>
          Retry
        </button>
        <button type="button" class="btn" data-focus onClick={() => (panel.value = '')}>
          Cancel
        </button>
      </div>
    </Popover>
  )
}

const retryStates = {
  waiting: 'Waiting for a worker to retry',
  running: 'Retrying',
  done: 'Retried',
  failed: 'Could not retry',
} as const

function DeadLetters() {
  const { explorer } = useShared()
  const { zone, group: opened } = explorer.view.value
  const { answer, problem } = explorer.pipeline.deadLetters.value
  const { groups = [], retry, total = 0 } = answer ?? {}
  const timeOf = (text: string): string => Object.values(wallTime(text, zone)).slice(0, 2).join(' ')
  return (
    <section class="block">
      <h2>
        Dead letters{' '}
        <span class="hint">
          {total === 0
            ? 'none: ClickHouse has taken every row'
            : `${plural(total, 'row', 'rows')}, by the reason`}
        </span>
      </h2>
      {problem !== undefined && <Trouble problem={problem} />}
      {retry && (
        <p class={`strip ${retry.state === 'failed' || retry.rejected > 0 ? 'paused' : ''}`} role="status">
          <EntryText text={`${retryStates[retry.state]} ${nameOf(retry.choice)}`} oneLine />
          <b>{count(retry.inserted)} inserted</b> {count(retry.rejected)} rejected again
          <EntryText text={retry.reason} oneLine />
        </p>
      )}
      {groups.map(({ code, reason, letters, projects, ...group }) => {
        const key = nameOf({ code, reason })
        return (
          <div class="letters" key={key}>
            <details
              open={opened === key}
              onToggle={({ currentTarget: { open } }) => {
                if (open !== (opened === key)) explorer.show({ group: open ? key : '' })
              }}
            >
              <summary>
                <b class="number">{count(group.count)}</b>
                <b class="mono">{code}</b> <EntryText text={reason} oneLine />
                <span class="hint">
                  <EntryText text={projects.map((project) => project || 'no project').join(', ')} oneLine />
                </span>
                <span class="hint number">last {timeOf(group.last_failed_at)}</span>
              </summary>
              {(opened === key ? letters : []).map(({ id, project_id: project, failed_at: failedAt }) => (
                <div key={id}>
                  <span class="number">{timeOf(failedAt)}</span>
                  <EntryText text={project || 'no project'} oneLine />
                  <span class="mono">{id}</span>
                  <Retry label="Retry" choice={{ id }} rows={1} />
                </div>
              ))}
              <p class="hint">The newest. To see a row, and all of the reason: sluice dead-letters show ID</p>
            </details>
            <Retry label="Retry all" choice={{ code, reason }} rows={group.count} />
          </div>
        )
      })}
    </section>
  )
}

const Trouble = ({ problem, children }: { problem: Problem; children?: ComponentChildren }) => (
  <p class="strip paused" role="alert">
    <b>{problem.message}</b> {problem.detail} {children}
  </p>
)

const Blank = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <main>
    <div class="blank" role="status">
      <h2>{title}</h2>
      {children}
    </div>
  </main>
)

/** The state of the installation: what comes in, what waits, what was refused, and who does the work. */
export function PipelinePage() {
  const { explorer } = useShared()
  const { answer, problem } = explorer.pipeline.state.value
  if (!explorer.can('admin'))
    return (
      <Blank title="This key may not see the pipeline">
        <p>The pipeline is of all projects. It needs a key with the scope “admin”:</p>
        <code>sluice keys create --project {explorer.project.value} --scope read,admin</code>
      </Blank>
    )
  if (answer === undefined)
    return <Blank title={problem?.message ?? 'Loading …'}>{problem && <p>{problem.detail}</p>}</Blank>
  const { zone } = explorer.view.value
  const memory = answer.servers.map(
    (each) => `${megabytes(each.used_bytes)} of ${megabytes(each.limit_bytes)}`,
  )
  const findings = pipeline.findingsOf(answer, explorer.pipeline.deadLetters.value.answer?.total ?? 0)
  return (
    <main class={`pipeline ${problem === undefined ? '' : 'old'}`}>
      {problem && (
        <Trouble problem={problem}>This is what was known at {wallTime(answer.at, zone).time}.</Trouble>
      )}
      <ul class="findings" aria-label="What needs attention">
        {findings.map(([level, text]) => (
          <li key={text}>
            <Mark level={level} text={text} />
          </li>
        ))}
        {findings.length === 0 && (
          <li>
            <Mark level="success" text="Nothing needs attention." />
          </li>
        )}
      </ul>
      <Tiles state={answer} />
      <Table
        title="Shards"
        note={`Redis: ${memory.join(', ')}`}
        columns={shardColumns}
        items={answer.shards}
      />
      <Table title="Processes" note="every 5 s" columns={processColumns} items={answer.processes} />
      <DeadLetters />
    </main>
  )
}
