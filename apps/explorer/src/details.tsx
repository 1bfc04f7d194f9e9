import { useSignal } from '@preact/signals'
import { correlationOf, type Entry, isTree, leavesOf, textOf } from './entry.ts'
import type { Explorer } from './explorer.ts'
import { termOf } from './query-text.ts'
import { duration, offsetLabel, wallTime } from './times.ts'
import { EntryText, Icon, IconButton, type IconName, moveFocus, useShared } from './ui.tsx'
import { count, plural } from './visible-text.ts'

/** Metadata can have ten thousand members: more are drawn when they are asked for. */
const MEMBERS_DRAWN = 100
const OPEN_DEPTH = 2
/** Lines of a longer message or stack are shown when they are asked for. */
const TEXT_CHARACTERS_MAX = 4000

const shownFirst = ['service', 'environment', 'source', 'url', 'pathname']
const shownElsewhere = new Set([
  'id',
  'timestamp',
  'received_at',
  'level',
  'message',
  'stack',
  'metadata',
  ...shownFirst,
])

async function copy(explorer: Explorer, text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    explorer.say(`Copied ${what}`)
  } catch {
    explorer.say('The browser does not allow copying')
  }
}

interface EntryAction {
  readonly key: string
  readonly icon: IconName
  readonly help: string
  /** Of its button. Undefined: it does not concern the entry. */
  readonly label: (entry: Entry) => string | undefined
  readonly run: (explorer: Explorer, entry: Entry) => void
}
export const entryActions: readonly EntryAction[] = [
  {
    key: 'c',
    icon: 'around',
    help: 'The entries around it',
    label: () => 'Context',
    run: (explorer, { id }) => explorer.show({ context: id, live: false }),
  },
  {
    key: 'o',
    icon: 'search',
    help: 'All entries of the same request or trace',
    label: (entry) => {
      const same = correlationOf(entry)
      return same && `Same ${same[0]}`
    },
    run: (explorer, entry) => {
      const same = correlationOf(entry)
      if (same === undefined) explorer.say('This entry has no id of a request or trace')
      else explorer.search(termOf(...same))
    },
  },
  {
    key: 'p',
    icon: 'link',
    help: 'Copy the link to it',
    label: () => 'Link',
    run: (explorer, entry) => void copy(explorer, explorer.linkTo(entry), 'the link'),
  },
  {
    key: 'y',
    icon: 'copy',
    help: 'Copy it as JSON, with all digits',
    label: () => 'JSON',
    run: (explorer, entry) => void copy(explorer, JSON.stringify(entry, null, 2), 'the entry'),
  },
]

interface ValueProps {
  readonly field: string
  readonly name: string
  readonly value: unknown
}
function Field({ field, name, value }: ValueProps) {
  const { explorer } = useShared()
  const text = textOf(value)
  const kind = value === null ? 'null' : typeof value === 'object' ? 'number' : typeof value
  const actions: readonly (readonly [key: string, icon: IconName, verb: string, run: () => void])[] = [
    ['f', 'plus', 'Filter by', () => explorer.toggleFilter(field, text, false)],
    ['x', 'minus', 'Exclude', () => explorer.toggleFilter(field, text, true)],
    ['', 'columns', 'Column', () => explorer.toggleIn('columns', field)],
    ['y', 'copy', 'Copy', () => void copy(explorer, text, name)],
  ]
  return (
    <div
      class="pair"
      tabIndex={0}
      role="group"
      aria-label={name}
      onKeyDown={(event) => {
        const action = actions.find(([key]) => key === event.key)
        if (action === undefined || event.ctrlKey || event.metaKey) return
        event.stopPropagation()
        action[3]()
      }}
    >
      <span class="name">
        <EntryText text={name} oneLine />
      </span>
      <LongText text={text} class={`value is-${kind} ${field === 'level' ? `level level-${text}` : ''}`} />
      <span class="pair-actions">
        {actions.map(([key, icon, verb, run]) => (
          <IconButton
            key={icon}
            icon={icon}
            class="bare"
            label={`${verb} ${name}${key && ` (${key})`}`}
            tabIndex={-1}
            onClick={run}
          />
        ))}
      </span>
    </div>
  )
}

function LongText({ text, class: name, marks }: { text: string; class: string; marks?: readonly string[] }) {
  const isWhole = useSignal(false)
  const isCut = text.length > TEXT_CHARACTERS_MAX && !isWhole.value
  return (
    <span class={name}>
      <EntryText text={isCut ? text.slice(0, TEXT_CHARACTERS_MAX) : text} marks={marks} />
      {isCut && (
        <button type="button" class="more" onClick={() => (isWhole.value = true)}>
          … {count(text.length - TEXT_CHARACTERS_MAX)} more characters
        </button>
      )}
    </span>
  )
}

function Branch({ name, path, value, depth }: { name: string; path: string; value: object; depth: number }) {
  const members = Array.isArray(value)
    ? value.map((item, index) => [String(index), item as unknown] as const)
    : Object.entries(value)
  const isOpen = useSignal(depth < OPEN_DEPTH && members.length <= MEMBERS_DRAWN)
  return (
    <div class="branch">
      <button
        type="button"
        class="branch-name"
        aria-expanded={isOpen.value}
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        <Icon name={isOpen.value ? 'down' : 'right'} />
        <EntryText text={name} oneLine />
        <span class="hint">
          {Array.isArray(value)
            ? plural(members.length, 'item', 'items')
            : plural(members.length, 'field', 'fields')}
        </span>
      </button>
      {isOpen.value && (
        <Members members={members} path={path} depth={depth + 1} isArray={Array.isArray(value)} />
      )}
    </div>
  )
}

interface MembersProps {
  readonly members: readonly (readonly [string, unknown])[]
  readonly path: string
  readonly depth: number
  readonly isArray?: boolean
}
function Members({ members, path, depth, isArray = false }: MembersProps) {
  const drawn = useSignal(MEMBERS_DRAWN)
  return (
    <div class={depth > 0 ? 'members' : ''}>
      {members.slice(0, drawn.value).map(([name, value]) => {
        // The language has no path into an array: its items are found by the path of the array.
        const own = isArray ? path : path === '' ? name : `${path}.${name}`
        return isTree(value) && Object.keys(value).length > 0 ? (
          <Branch key={name} name={name} path={own} value={value} depth={depth} />
        ) : (
          <Field key={name} field={own} name={name} value={value} />
        )
      })}
      {members.length > drawn.value && (
        <button type="button" class="more" onClick={() => (drawn.value += 10 * MEMBERS_DRAWN)}>
          {count(members.length - drawn.value)} more
        </button>
      )}
    </div>
  )
}

const isOfLibrary = (line: string): boolean =>
  /^\s+at .*(?:node:|node_modules[/\\])|^\s+File ".*site-packages/.test(line)

/** A stack, in which consecutive frames of libraries are one line until they are asked for. */
function Stack({ stack }: { stack: string }) {
  const isWhole = useSignal(false)
  const groups: { lines: string[]; library: boolean }[] = []
  for (const line of stack.split('\n')) {
    const library = isOfLibrary(line)
    const last = groups.at(-1)
    if (last?.library === library) last.lines.push(line)
    else groups.push({ lines: [line], library })
  }
  return (
    <pre class="stack mono" tabIndex={0} aria-label="Stack">
      {groups.map(({ lines, library }, index) =>
        library && lines.length > 1 && !isWhole.value ? (
          <button type="button" class="more" key={index} onClick={() => (isWhole.value = true)}>
            … {plural(lines.length, 'frame', 'frames')} of libraries
          </button>
        ) : (
          <LongText key={index} class={library ? 'library' : ''} text={`${lines.join('\n')}\n`} />
        ),
      )}
    </pre>
  )
}

function Opened({ entry }: { entry: Entry }) {
  const { explorer, results } = useShared()
  const { zone } = explorer.view.value
  const { date, time, fraction } = wallTime(entry.timestamp, zone)
  const latencyMs = Date.parse(entry.received_at) - Date.parse(entry.timestamp)
  const columns = [...shownFirst, ...Object.keys(entry).filter((name) => !shownElsewhere.has(name))].filter(
    (name) => entry[name] !== undefined,
  )
  const metadata = Object.entries(entry.metadata ?? {})
  const fields = entry.metadata === undefined ? 0 : [...leavesOf(entry.metadata)].length
  return (
    <>
      <div class="actions">
        {entryActions.map(({ key, icon, help, label, run }) => {
          const text = label(entry)
          return (
            text !== undefined && (
              <IconButton
                key={key}
                icon={icon}
                label={`${help} (${key})`}
                onClick={() => run(explorer, entry)}
              >
                {text}
              </IconButton>
            )
          )
        })}
      </div>
      <div class={`entry-message mono level-${entry.level}`}>
        <LongText class="" text={entry.message} marks={results.marks.value} />
      </div>
      <div class="pairs mono">
        <div class="pair">
          <span class="name">time</span>
          <span class="value">
            {date} {time}.{fraction}{' '}
            <span class="hint">{offsetLabel(Date.parse(entry.timestamp), zone)}</span>
          </span>
        </div>
        <div class="pair">
          <span class="name">received</span>
          <span class="value" title={entry.received_at}>
            {latencyMs < 0 ? `${duration(-latencyMs)} earlier` : `${duration(latencyMs)} later`}
          </span>
        </div>
        <Field field="level" name="level" value={entry.level} />
        {columns.map((name) => (
          <Field key={name} field={name} name={name} value={entry[name]} />
        ))}
        <Field field="id" name="id" value={entry.id} />
      </div>
      {typeof entry['stack'] === 'string' && (
        <>
          <h2>
            Stack
            <IconButton
              icon="copy"
              class="bare"
              label="Copy the stack"
              onClick={() => void copy(explorer, String(entry['stack']), 'the stack')}
            />
          </h2>
          <Stack stack={entry['stack']} />
        </>
      )}
      {metadata.length > 0 && (
        <>
          <h2>
            Metadata <span class="hint">{plural(fields, 'field', 'fields')}, as sent</span>
          </h2>
          <div class="pairs mono">
            <Members members={metadata} path="" depth={0} />
          </div>
        </>
      )}
    </>
  )
}

export function Details() {
  const { explorer, results } = useShared()
  const { loading, answer, problem } = results.detail.value
  return (
    <aside
      id="details"
      class="details"
      aria-label="Details of the entry"
      tabIndex={-1}
      onKeyDown={(event) => moveFocus(event, event.currentTarget)}
    >
      <IconButton
        icon="close"
        label="Close the details (Esc)"
        class="bare close"
        onClick={() => explorer.show({ selected: '' })}
      />
      {loading && <p class="hint">Reading the entry …</p>}
      {problem !== undefined && (
        <div class="blank" role="alert">
          <h2>{problem.message}</h2>
          <p>{problem.detail}</p>
        </div>
      )}
      {answer !== undefined && <Opened key={answer.id} entry={answer} />}
    </aside>
  )
}
