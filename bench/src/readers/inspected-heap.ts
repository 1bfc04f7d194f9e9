import { once } from 'node:events'

/** The environment of a process whose heap `inspectedHeapBytes` can ask for. */
export const inspectedAt = (port: number) => ({ NODE_OPTIONS: `--inspect=127.0.0.1:${port}` })

/** The heap of a process that is in use, after a garbage collection. */
export async function inspectedHeapBytes(port: number): Promise<number> {
  const [target] = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as [
    { webSocketDebuggerUrl: string },
  ]
  const socket = new WebSocket(target.webSocketDebuggerUrl)
  await once(socket, 'open')
  const ask = async (id: number, method: string): Promise<{ result: { usedSize?: number } }> => {
    socket.send(JSON.stringify({ id, method }))
    for (;;) {
      const [{ data }] = (await once(socket, 'message')) as [{ data: string }]
      const answer = JSON.parse(data) as { id?: number; result: { usedSize?: number } }
      if (answer.id === id) return answer
    }
  }
  await ask(1, 'HeapProfiler.collectGarbage')
  const { result } = await ask(2, 'Runtime.getHeapUsage')
  socket.close()
  return result.usedSize ?? 0
}
