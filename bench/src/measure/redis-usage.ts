import { redisInfo } from './redis-info.ts'

/** What Redis used for something. */
export interface RedisUsage {
  readonly ms: number
  /** CPU time of the main thread. */
  readonly userUs: number
  readonly systemUs: number
  /** The calls and the time of each command, those in scripts included. */
  readonly commands: ReadonlyMap<string, { readonly calls: number; readonly us: number }>
}

/** What the Redis at an address uses while something runs. */
export async function redisUsageOf(url: string, run: () => Promise<void>): Promise<RedisUsage> {
  const before = await usageNow(url)
  const startedMs = performance.now()
  await run()
  const ms = performance.now() - startedMs
  const after = await usageNow(url)
  const commands = [...after.commands].map(([name, { calls, us }]) => {
    const earlier = before.commands.get(name) ?? { calls: 0, us: 0 }
    return [name, { calls: calls - earlier.calls, us: us - earlier.us }] as const
  })
  return {
    ms,
    userUs: after.userUs - before.userUs,
    systemUs: after.systemUs - before.systemUs,
    commands: new Map(commands.filter(([, { calls }]) => calls > 0)),
  }
}

async function usageNow(url: string): Promise<Omit<RedisUsage, 'ms'>> {
  const [cpu, stats] = [await redisInfo(url, 'cpu'), await redisInfo(url, 'commandstats')]
  const microseconds = (field: string): number => Number(cpu.get(field)) * 1_000_000
  const commands = [...stats].flatMap(([name, text]) => {
    const [, calls, us] = /calls=(\d+),usec=(\d+)/.exec(text) ?? []
    return calls === undefined
      ? []
      : [[name.replace('cmdstat_', ''), { calls: Number(calls), us: Number(us) }] as const]
  })
  return {
    userUs: microseconds('used_cpu_user_main_thread'),
    systemUs: microseconds('used_cpu_sys_main_thread'),
    commands: new Map(commands),
  }
}
