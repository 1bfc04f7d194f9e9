# Makes an entry of each record of `journalctl --output json --all`.
# A field is an array of bytes if it is not UTF-8 or has control characters.
def text: if type == "array" then map(if type == "number" then (if . < 128 then . else 65533 end) else 65533 end) | implode else . end;
{
  timestamp: ((.__REALTIME_TIMESTAMP[:-6] | tonumber | todate | rtrimstr("Z")) + "." + .__REALTIME_TIMESTAMP[-6:] + "Z"),
  level: (.PRIORITY // "6" | tonumber | if . <= 3 then "error" elif . == 4 then "warn" elif . == 7 then "debug" else "info" end),
  message: (.MESSAGE // "" | text | .[:65536]),
  service: (.SYSLOG_IDENTIFIER // ._COMM // "journal" | text | .[:256]),
  source: "server",
  metadata: {
    host: ._HOSTNAME,
    unit: (._SYSTEMD_USER_UNIT // ._SYSTEMD_UNIT),
    pid: ._PID,
    boot: ._BOOT_ID
  } | with_entries(select(.value != null))
}
