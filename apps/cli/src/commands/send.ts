import type { Command } from 'commander'
import type { Context } from '../context.ts'

export interface SendOptions {
  level: string
  service?: string
  environment?: string
  retryFor: string
  apiUrl?: string
  apiKey?: string
}

export function addSendCommand(program: Command, context: Context): void {
  program
    .command('send')
    .description('send log files, or the standard input')
    .argument('[files...]', 'lines of text or of JSON; the standard input, if left out or -')
    .option('--level <level>', 'of lines that name none', 'info')
    .option('--service <name>', "of lines that name none; the file's name without its extension, if left out")
    .option('--environment <name>', 'of lines that name none: development, staging or production')
    .option('--retry-for <time>', 'how long to go on trying when the API is overloaded or away', '5m')
    .option('--api-url <url>', 'the API (SLUICE_API_URL)')
    .option('--api-key <key>', 'the key (SLUICE_API_KEY, which other users of the machine cannot see)')
    .addHelpText('after', LINES_HELP)
    .action(async (files: string[], options: SendOptions) => {
      const { send } = await import('../send/send.ts')
      await send(files, options, context)
    })
}

const LINES_HELP = `
A line that is a JSON object is sent as an entry, with all its fields. What it lacks is filled in: the level from --level,
the message from "msg", else it is the line itself; the timestamp from "time". Levels of other loggers are translated
(30, "warning", "FATAL" …). Every other line becomes the message of an entry. Blank lines are skipped.`
