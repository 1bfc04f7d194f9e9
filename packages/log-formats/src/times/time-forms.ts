/**
 * The forms of date and time in log lines, as regular expressions that match at a position. Their parts have the same
 * names in all of them. Hours, minutes and seconds are checked here, and days by the calendar.
 */

/** The fraction after a comma, a point, or a colon as in `10:00:00:123`. A zone after it, also after a blank. */
const FRACTION = String.raw`(?:[.,](?<fraction>\d{1,9})\d*|:(?<ms>\d{1,3})(?![\d:]))?`
/** Go writes the name of the zone after its offset. PostgreSQL writes only the hours of an offset, after a blank. */
const ZONE_NAME = String.raw`(?:(?<=\d) (?:UTC|GMT|CES?T|EES?T|[ECMP][SD]T|BST|IST|JST|MSK)(?: m=[+-][\d.]{1,30})?(?= |$))?`
const ZONE = String.raw`(?:(?<blank> ?)(?<zone>[Zz](?![A-Za-z])|[+-]\d\d:?\d\d(?!\d|\.\d)|(?<=\d)[+-]\d\d(?![\d:])|[+-]\d\d(?= \[|:[\w[.])|[A-Z]{3,5}(?=[ \]>:,]|$))${ZONE_NAME})?`
/** The name of a zone, as PHP writes it: `Europe/Berlin`. */
const REGION = String.raw`(?: (?<region>[A-Z][A-Za-z]{2,19}(?:\/[A-Za-z_+-]{2,30}){1,2}))?`
const TIME = String.raw`(?<hour>[01]?\d|2[0-3]):(?<minute>[0-5]?\d):(?<second>60|[0-5]?\d)`
const CLOCK = `${TIME}${FRACTION}`
const MERIDIEM = String.raw`(?: ?(?<meridiem>[AaPp])\.?[Mm]\b\.?)?`
const MONTHS = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec'
const MONTH_NAME = `(?<monthName>${MONTHS})`
const MONTH_IN_ANY_CASE = `(?<monthName>${MONTHS}|${MONTHS.toUpperCase()})`

const sticky = (source: string): RegExp => new RegExp(source, 'y')

/** `2026-11-20 10:00:00,123`, `2026/11/20T10:00:00.123Z`, `2026.11.20 10:00:00`, `2026-11-20-10:00:00`, `2026-11-20 10:00`. */
export const YEAR_FIRST = sticky(
  String.raw`(?<year>\d{4})(?<separator>[-/.:])(?<month>\d\d?)\k<separator>(?<day>\d\d?)(?:[Tt_-]|,? {1,2}| - |::?)` +
    String.raw`(?<hour>[01]?\d|2[0-3]):(?<minute>[0-5]?\d)(?::(?<second>60|[0-5]?\d)${FRACTION}${MERIDIEM}|(?![\d:]))${ZONE}`,
)

/** The most frequent case of the form above, without a zone, and with two digits for each part. */
export const COMMON =
  /(\d{4})[-/](\d\d)[-/](\d\d)[T ]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:[.,](\d{1,9})(?!\d)|(?![.,]\d))(?= (?:-(?!\d\d)|[[\]a-z|\d<({])|[,|\]]| (?:INFO|WARN|ERROR|DEBUG|FATAL|TRACE)\b|$)/y

/** `20261120-22:15:29:606`, `20261120T101500.123Z`, `20261120 10:15:00`, `20261120.101500,123`. */
export const COMPACT = sticky(
  String.raw`(?<year>[12]\d{3})(?<month>[01]\d)(?<day>[0-3]\d)[-T ._](?:${TIME}|` +
    String.raw`(?<hour2>[01]\d|2[0-3])(?<minute2>[0-5]\d)(?<second2>[0-5]\d|60))${FRACTION}(?!\d)${ZONE}`,
)

/** `081109 203615` and `161120 10:00:00`, as Hadoop's file system and MySQL wrote them. */
export const COMPACT_SHORT = sticky(
  String.raw`(?<year>\d\d)(?<month>[01]\d)(?<day>[0-3]\d) {1,2}(?:(?<hour>[01]?\d|2[0-3]):(?<minute>[0-5]\d):(?<second>[0-5]\d)|` +
    String.raw`(?<hour2>[01]\d|2[0-3])(?<minute2>[0-5]\d)(?<second2>[0-5]\d))(?![\d:])`,
)

/** `17/06/09 20:10:40`, `11/20/2026 10:00:00 AM`, `20.11.2026 10:00:00`, `20-11-2026 10:00:00`. */
export const THREE_NUMBERS = sticky(
  String.raw`(?<first>\d\d?)(?<separator>[-/.])(?<middle>\d\d?)\k<separator>(?<last>\d{4}|\d\d)(?:,? {1,2}| --? |[T_-])${CLOCK}${MERIDIEM}${ZONE}`,
)

/** `20/Nov/2026:10:00:00 +0000`, `20-Nov-2026 10:00:00.123`, `20 Nov 2026 10:00:00`, `20-Nov-2026::10:00:00`. */
export const DAY_FIRST = sticky(
  String.raw`(?<day>\d\d?)(?<separator>[-/ ])${MONTH_IN_ANY_CASE}\k<separator>(?<year>\d{4})(?:::?|,? )${CLOCK}${MERIDIEM}${ZONE}${REGION}`,
)

/** `20 Nov 10:00:00.123` (Redis before version 5), `20Nov2026 10:00:00.123` (Forge). */
export const DAY_AND_MONTH = sticky(String.raw`(?<day>\d\d?) ?${MONTH_NAME}(?<year>\d{4})? ${CLOCK}(?![\d:])`)

/** `Nov 20, 2026 10:00:00 AM`, `Nov 20 2026 10:00:00.123 UTC`. */
export const MONTH_FIRST = sticky(
  String.raw`${MONTH_NAME}[a-z]{0,6} {1,2}(?<day>\d\d?),? (?<year>\d{4}),? ${CLOCK}${MERIDIEM}${ZONE}`,
)

/** `2026 Nov 20 10:00:00.123`, as Cisco's switches write it. */
export const YEAR_AND_MONTH = sticky(
  String.raw`(?<year>\d{4}) ${MONTH_NAME} {1,2}(?<day>\d\d?) ${CLOCK}${ZONE}`,
)

/** `Nov-20-26 10:00:00`, as ASSP writes it. */
export const MONTH_WITH_DASHES = sticky(
  String.raw`${MONTH_NAME}-(?<day>\d\d)-(?<year>\d\d) ${CLOCK}(?![\d:])`,
)

/** `2026.11.20-10.00.00:123`, as the Unreal Engine writes it. */
export const POINTS = sticky(
  String.raw`(?<year>\d{4})\.(?<month>\d\d)\.(?<day>\d\d)-(?<hour>[01]\d|2[0-3])\.(?<minute>[0-5]\d)\.(?<second>[0-5]\d)(?::(?<ms>\d{3}))?(?!\d)`,
)

/** `Fri Nov 20 10:00:00 2026`, `Sun Dec 04 04:47:44.123456 2005`, `Wed May 19 08:00:01 EST 2021`. */
export const YEAR_LAST = sticky(
  String.raw`(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ${MONTH_NAME} {1,2}(?<day>\d\d?) ${CLOCK}(?: (?<zone>[A-Z]{3,4}))? (?<year>\d{4})(?!\d)`,
)

/** `Fri, 20 Nov 2026 10:00:00 +0000` (RFC 9110), `Fri 2026-11-20 10:00:00 UTC` (systemd). The rest has another form. */
export const WEEKDAY = /(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?=\d)/y

/** `Nov 20 10:00:00`, `Nov  2 10:00:00.123`, `Nov-20 10:00:00.123`. */
export const SYSLOG = sticky(
  String.raw`${MONTH_NAME}(?: {1,2}|-)(?<day>\d\d?) ${CLOCK}(?:(?<blank> ?)(?<zone>Z|(?:UTC|GMT)(?=[ :])|[+-]\d\d:?\d\d))?`,
)

/** The most frequent case of the form above, without a fraction and a zone. */
export const COMMON_SYSLOG =
  /(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) ([ \d]\d) ([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?= (?!UTC|GMT|Z)[A-Za-z])/y

/** `03-17 16:13:38.811` (Android), `10.30 16:49:06` (Proxifier), `11/20 10:00:00`, `11-20|10:00:00` (geth). */
export const MONTH_AND_DAY = sticky(String.raw`(?<month>[01]?\d)[-./](?<day>[0-3]?\d)[ |-]${CLOCK}(?![\d:])`)

/** `1795214581.123456`, `1795214581123`: seconds to nanoseconds since 1970, of the years 2001 to 2286. */
export const EPOCH = /[1-9]\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d{1,9})?(?=[\s\]):,|]|$)/y

/** `@4000000037c219bf2ef02e94`: TAI64N of daemontools. */
export const TAI64N = /@4([0-9a-f]{15})([0-9a-f]{8})(?![0-9a-f])/y
