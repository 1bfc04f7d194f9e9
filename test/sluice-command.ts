import { clickhouseEnvironment, type Installation } from '@sluice/local'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Runs the command line in a separate process. */
export async function runSluice(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly stdout: string; readonly stderr: string; readonly code: number }> {
  const program = fileURLToPath(new URL('../apps/cli/src/main.ts', import.meta.url))
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { env: { ...env } }, (error, stdout, stderr) =>
      resolve({ stdout, stderr, code: error === null ? 0 : Number(error.code) }),
    )
  })
}

/** Runs `sluice status --json`. @returns its object and its exit code */
export async function runStatus({ redisUrl, prefix, clickhouse }: Installation): Promise<{
  readonly status: Record<string, unknown>
  readonly code: number
}> {
  const { stdout, stderr, code } = await runSluice(['status', '--json', '--interval', '1'], {
    REDIS_URL: redisUrl,
    SLUICE_PREFIX: prefix,
    ...clickhouseEnvironment(clickhouse),
  })
  if (stdout === '') throw new Error(stderr)
  return { status: JSON.parse(stdout) as Record<string, unknown>, code }
}
