import { timeOfEpoch } from '@sluice/records'
import { type LineFormat, matchAt } from './format.ts'
import { setLevelOf } from './level-words.ts'
import { LogLine } from './log-line.ts'
import { readProgram } from './syslog.ts'

/** The label of an alert or a dash, seconds since 1970, the date, the node. */
const LABEL = /(-|[A-Z][A-Z0-9_]{1,30}) (\d{10}) (\d{4}\.\d\d\.\d\d) (\S+) /y
/** Blue Gene/L: the local time with microseconds, the node again, type, component, level. */
const BLUE_GENE = /\d{4}-\d\d-\d\d-\d\d\.\d\d\.(\d\d)\.(\d{6}) (\S+) (\S+) (\S+) ([A-Z]+) ?/y
/** Thunderbird, Spirit and Liberty: the local time and the location, as in syslog. */
const CLUSTER = /[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d (\S+)(?=\s)/y

/**
 * The logs of supercomputers, published by their laboratories. Both times of a line are the same moment. The one since 1970
 * has no doubtful offset, and the other one has the fraction.
 */
export const labelledSyslog: LineFormat = (text) => {
  const label = matchAt(LABEL, text, 0)
  if (label === undefined) return undefined
  const [, alert, seconds = '', , node] = label
  const start = LABEL.lastIndex
  const line = new LogLine()
  line.add('alert', alert)
  line.add('node', node)
  return readBlueGene(text, start, seconds, line) || readCluster(text, start, seconds, line)
    ? line
    : undefined
}

function readBlueGene(text: string, start: number, seconds: string, line: LogLine): boolean {
  const match = matchAt(BLUE_GENE, text, start)
  if (match === undefined) return false
  const [, second, fraction, , type, component, level = ''] = match
  const isSameSecond = Number(seconds) % 60 === Number(second)
  line.timestamp = timeOfEpoch(isSameSecond ? `${seconds}.${fraction}` : seconds)
  line.add('type', type)
  line.add('logger', component)
  setLevelOf(line, level)
  line.message = text.slice(BLUE_GENE.lastIndex)
  return line.timestamp !== undefined
}

function readCluster(text: string, start: number, seconds: string, line: LogLine): boolean {
  const match = matchAt(CLUSTER, text, start)
  if (match === undefined) return false
  line.timestamp = timeOfEpoch(seconds)
  line.add('host', match[1])
  readProgram(text, CLUSTER.lastIndex, line)
  return line.timestamp !== undefined
}

/** The clusters of Los Alamos: number, node, component, state, seconds since 1970, flag. */
const LOS_ALAMOS = /(\d{1,10}) (\S+) (\S+) (\S+) (\d{9,10}) (-?\d) /y

export const losAlamos: LineFormat = (text) => {
  const match = matchAt(LOS_ALAMOS, text, 0)
  if (match === undefined) return undefined
  const [, id, node, component, state, seconds = '', flag] = match
  const line = new LogLine()
  line.timestamp = timeOfEpoch(seconds)
  if (line.timestamp === undefined) return undefined
  line.add('logId', id)
  line.add('node', node)
  line.add('logger', component)
  line.add('state', state)
  line.add('flag', flag)
  line.message = text.slice(LOS_ALAMOS.lastIndex)
  return line
}
