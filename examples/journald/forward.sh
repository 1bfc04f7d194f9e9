#!/bin/sh
# Sends what is new in the journal, and remembers how far it came. Run it by a timer. It continues after any interruption: the position is
# saved only after Sluice has acknowledged everything before it.
#
#   SLUICE_API_URL=https://logs.example.com SLUICE_API_KEY=slk_… ./forward.sh /var/lib/sluice-journal
#
# Further arguments are those of journalctl, such as --unit nginx.
set -eu
state=$1
shift
filter=$(dirname "$0")/entries.jq
trap 'rm -f "$state/records" "$state/entries"' EXIT
while :; do
  # At most 10,000 records at a time, so that an interruption repeats no more.
  if [ -s "$state/cursor" ]; then
    journalctl --quiet --no-pager --output json --all --after-cursor "$(cat "$state/cursor")" "$@"
  else
    journalctl --quiet --no-pager --output json --all "$@"
  fi | head -n 10000 >"$state/records"
  [ -s "$state/records" ] || exit 0
  jq --compact-output --from-file "$filter" "$state/records" >"$state/entries"
  sluice send "$state/entries" --retry-for 1h
  tail -n 1 "$state/records" | jq --raw-output .__CURSOR >"$state/cursor.new"
  mv "$state/cursor.new" "$state/cursor"
done
