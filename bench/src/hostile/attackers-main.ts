// The process of the attackers. It attacks until it is killed, or the process that forked it exits.
import { pause } from '@sluice/harness'
import type { Socket } from 'node:net'
import { type Attack, attacks, type Target } from './attacks.ts'

/** The message with which the attacks begin. */
export interface Orders extends Pick<Target, 'port' | 'key'> {
  /** Names of attacks. */
  readonly names: readonly string[]
}

/** All connections of an attack are replaced after this time: the API closes most of them. */
const ATTACK_MS = 40_000
const CLOSED_AT_ONCE = 100
const CLOSED_INTERVAL_MS = 10

process.on('message', ({ names, ...target }: Orders) => {
  for (const [name, attack] of Object.entries(attacks)) if (names.includes(name)) void repeat(attack, target)
})
process.on('disconnect', () => process.exit())

async function repeat(attack: Attack, target: Omit<Orders, 'names'>): Promise<never> {
  for (;;) {
    const sockets: Socket[] = []
    const over = AbortSignal.timeout(ATTACK_MS)
    await attack({ ...target, sockets, over }).catch(() => undefined)
    while (!over.aborted) await pause(CLOSED_INTERVAL_MS)
    for (const [index, socket] of sockets.entries()) {
      socket.destroy()
      if (index % CLOSED_AT_ONCE === 0) await pause(CLOSED_INTERVAL_MS)
    }
  }
}
