import type { Command } from 'commander'
import type { Context } from '../context.ts'
import type { SendOptions } from '../send/send.ts'
import { examples } from './help.ts'
import { withApiOptions } from './options.ts'

export function addSendCommand(program: Command, context: Context): void {
  withApiOptions(
    program
      .command('send')
      .description('send the lines of log files or of stdin as entries')
      .argument(
        '[files...]',
        'files with lines of text or JSON, also compressed with gzip, zstd or brotli; stdin if omitted or -',
      )
      .option('--level <level>', 'level of lines without one', 'info')
      .option('--raw', 'send each line as a message, whatever it contains')
      .option(
        '--timezone <zone>',
        'zone of times without an offset, such as UTC or Europe/Berlin (default: that of this machine)',
      )
      .option(
        '--service <name>',
        'service of lines without one (default: the name of the file, without extension)',
      )
      .option('--environment <name>', 'environment of lines without one: development, staging or production')
      .option(
        '--skip-lines <lines>',
        'lines of the input that are not sent, to continue after an interruption: a number, or ranges such as 1-200,301-400',
      )
      .option('--retry-for <time>', 'how long to retry while the API is overloaded or unavailable', '5m'),
  )
    .addHelpText('after', LINES_HELP)
    .addHelpText(
      'after',
      examples(
        ['send /var/log/*.log', 'the lines of files'],
        ['send app.log.gz --environment production', 'a compressed file'],
        ['send app.log --skip-lines 58500', 'the rest of the lines, after an interruption'],
        ['send --service web --level warn', 'the lines of stdin'],
      ),
    )
    .action(async (files: string[], options: SendOptions) => {
      const { send } = await import('../send/send.ts')
      await send(files, options, context)
    })
}

const LINES_HELP = `
Times, levels, programs and stack traces are recognized in the formats of most programs. A line that is a JSON object is sent
as an entry with all its fields; names such as "severity", "@timestamp" and "msg" are understood. What a line does not have
comes from the flags. Any other line becomes the message of an entry. Blank lines are skipped. With --raw, each line is a
message. Lines of stdin are sent within a second.`
