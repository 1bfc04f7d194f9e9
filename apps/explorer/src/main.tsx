import { effect } from '@preact/signals'
import { render } from 'preact'
import { Api } from './api.ts'
import { App } from './app.tsx'
import { Explorer } from './explorer.ts'
import { onShortcut } from './shortcuts.ts'
import { createShared, type Theme } from './ui.tsx'

const explorer = new Explorer(new Api(() => explorer.signedOut()))
const stored = localStorage.getItem('sluice.theme')
const shared = createShared(
  explorer,
  stored === 'light' || stored === 'dark' ? stored : ('auto' satisfies Theme),
)

effect(() => {
  document.documentElement.dataset['theme'] = shared.theme.value
  localStorage.setItem('sluice.theme', shared.theme.value)
  shared.colours.value = shared.colours.peek() + 1
})
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => (shared.colours.value += 1))
addEventListener('keydown', (event) => onShortcut(event, shared))
addEventListener('popstate', () => explorer.restore())

render(<App shared={shared} />, document.querySelector('#app') ?? document.body)
void explorer.start()
