import { type Signal, signal } from '@preact/signals'
import { type ComponentChildren, createContext } from 'preact'
import { useContext, useLayoutEffect, useRef } from 'preact/hooks'
import type { Explorer } from './explorer.ts'
import type { Results } from './results.ts'
import { piecesOf } from './visible-text.ts'

export type PanelName = '' | 'time' | 'columns' | 'saved' | 'export' | 'help' | `retry ${string}`
export type Theme = 'auto' | 'light' | 'dark'

/** What the components share: the explorer, and what is open, which is not worth an entry in the URL. */
export interface Shared {
  readonly explorer: Explorer
  readonly results: Results
  readonly panel: Signal<PanelName>
  readonly theme: Signal<Theme>
  /** The column that `f` and `x` filter by. */
  readonly cell: Signal<number>
  /** Changes when the colours do. */
  readonly colours: Signal<number>
}
export const createShared = (explorer: Explorer, theme: Theme): Shared => ({
  explorer,
  results: explorer.results,
  panel: signal<PanelName>(''),
  theme: signal(theme),
  cell: signal(0),
  colours: signal(0),
})

export const SharedContext = createContext<Shared | undefined>(undefined)
export function useShared(): Shared {
  const shared = useContext(SharedContext)
  if (shared === undefined) throw new Error('this component is outside of the page')
  return shared
}

const shapes = {
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.5 10.5 14 14',
  star: 'm8 1.8 1.9 4 4.3.6-3.1 3 .8 4.4L8 11.7l-3.9 2.1.8-4.4-3.1-3 4.3-.6z',
  clock: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M8 4.5V8l2.5 1.6',
  down: 'm4 6 4 4 4-4',
  right: 'm6 4 4 4-4 4',
  left: 'm10 4-4 4 4 4',
  play: 'M4.5 2.8v10.4l8-5.2z',
  pause: 'M5 3v10M11 3v10',
  refresh: 'M13.5 8A5.5 5.5 0 1 1 11.6 3.8L13.5 5.5M13.5 2v3.5H10',
  theme: 'M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12',
  help: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M6.2 6.2c.2-2.3 3.7-2.2 3.7 0C9.9 7.6 8 7.5 8 9.300M8 11.400v.2',
  columns: 'M2 3h12v10H2zM6 3v10M10 3v10',
  download: 'M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11',
  copy: 'M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3',
  link: 'M6.5 9.5a3 3 0 0 0 4.2 0l2-2a3 3 0 0 0-4.2-4.200l-.7.7M9.5 6.5a3 3 0 0 0-4.2 0l-2 2a3 3 0 0 0 4.2 4.200l.7-.7',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  close: 'm4 4 8 8M12 4l-8 8',
  around: 'M2 4h12M2 8h12M2 12h12M1 6.5v3',
  out: 'M6 2.5H2.5v11H6M10 4.5 13.5 8 10 11.5M13.5 8H6',
  zoomOut: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.5 10.5 14 14M5 7h4',
} as const
export type IconName = keyof typeof shapes

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
    <path d={shapes[name]} />
  </svg>
)

interface IconButtonProps {
  readonly icon: IconName
  /** What it does, and its key. */
  readonly label: string
  readonly onClick: () => void
  readonly class?: string
  readonly pressed?: boolean
  readonly tabIndex?: number
  readonly children?: ComponentChildren
}
export const IconButton = ({
  icon,
  label,
  pressed,
  children,
  class: name = '',
  ...rest
}: IconButtonProps) => (
  <button
    type="button"
    class={`btn ${name}`}
    aria-label={children === undefined ? label : undefined}
    title={label}
    aria-pressed={pressed}
    {...rest}
  >
    <Icon name={icon} />
    {children}
  </button>
)

/** A text of an entry, with what would be invisible shown. It needs a <bdi> or a block around it, which isolates its directions. */
export const shownText = (text: string, marks?: readonly string[], oneLine = true): ComponentChildren =>
  piecesOf(text, marks, oneLine).map(({ text: piece, kind, title }) => {
    if (kind === 'plain') return piece
    return kind === 'mark' ? (
      <mark>{piece}</mark>
    ) : (
      <span class="hidden-character" title={title}>
        {piece}
      </span>
    )
  })

interface EntryTextProps {
  readonly text: string
  readonly marks?: readonly string[] | undefined
  readonly oneLine?: boolean
}
export const EntryText = ({ text, marks, oneLine = false }: EntryTextProps) => (
  <bdi dir="ltr">{shownText(text, marks, oneLine)}</bdi>
)

const focusable = 'button, input, select, textarea, a[href], [tabindex="0"]'

interface PopoverProps {
  readonly name: PanelName
  readonly label: string
  readonly button: ComponentChildren
  readonly buttonClass?: string
  readonly children: ComponentChildren
}
/** A button and the panel that it opens. Escape, a click elsewhere, and leaving it with Tab close it. */
export function Popover({ name, label, button, buttonClass = 'btn', children }: PopoverProps) {
  const { panel } = useShared()
  const root = useRef<HTMLDivElement>(null)
  const opener = useRef<HTMLButtonElement>(null)
  const isOpen = panel.value === name
  // Before the next key arrives.
  useLayoutEffect(() => {
    if (!isOpen) return undefined
    const content = root.current?.querySelector('.popover')
    const first =
      content?.querySelector<HTMLElement>('[data-focus]') ?? content?.querySelector<HTMLElement>(focusable)
    first?.focus()
    const closeOutside = (event: Event): void => {
      if (root.current?.contains(event.target as Node) === false) panel.value = ''
    }
    document.addEventListener('pointerdown', closeOutside)
    document.addEventListener('focusin', closeOutside)
    return () => {
      document.removeEventListener('pointerdown', closeOutside)
      document.removeEventListener('focusin', closeOutside)
    }
  }, [isOpen])
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isOpen) return
    if (event.key === 'Escape') {
      panel.value = ''
      opener.current?.focus()
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp')
      moveFocus(event, root.current?.querySelector('.popover'))
    else return
    event.stopPropagation()
  }
  return (
    <div class="popover-root" ref={root} onKeyDown={onKeyDown}>
      <button
        type="button"
        ref={opener}
        class={buttonClass}
        aria-label={buttonClass === 'btn' ? label : undefined}
        title={label}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        onClick={() => (panel.value = isOpen ? '' : name)}
      >
        {button}
      </button>
      {isOpen && (
        <div class="popover" role="dialog" aria-label={label}>
          {children}
        </div>
      )}
    </div>
  )
}

/** Moves the focus among the controls of a part of the page with the arrow keys. */
export function moveFocus(event: KeyboardEvent, root: Element | null | undefined): void {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
  const target = event.target as HTMLElement
  if (step === 0 || root === null || root === undefined || target instanceof HTMLSelectElement) return
  const all = [...root.querySelectorAll<HTMLElement>(focusable)].filter((element) => element.tabIndex >= 0)
  const next = all[all.indexOf(target) + step]
  if (next === undefined) return
  event.preventDefault()
  next.focus()
}
