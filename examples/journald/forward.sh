#!/bin/sh
# Sends what is new in the journal, and remembers how far it came. Run it by a timer. It continues after any interruption: the position is
# saved only after Sluice has answered everything before it: an entry that Sluice rejects is reported, and does not stop the others.
#
#   SLUICE_API_URL=https://logs.example.com SLUICE_API_KEY=slk_… ./forward.sh /var/lib/sluice-journal
#
# Further arguments are those of journalctl, such as --unit nginx.
set -eu
state=$1
shift
filter=$(dirname "$0")/entries.jq
trap 'rm -f "$state/records" "$state/entries" "$state/summary"' EXIT
while :; do
  # At most 10,000 records at a time, so that an interruption repeats no more.
  if [ -s "$state/cursor" ]; then
    journalctl --quiet --no-pager --output json --all --after-cursor "$(cat "$state/cursor")" "$@"
  else
    journalctl --quiet --no-pager --output json --all "$@"
  fi | head -n 10000 >"$state/records"
  [ -s "$state/records" ] || exit 0
  jq --compact-output --from-file "$filter" "$state/records" >"$state/entries"
  # The exit code does not tell rejected entries, which would be rejected again, from those without an answer. The summary does.
  status=0
  sluice send "$state/entries" --retry-for 1h >"$state/summary" || status=$?
  cat "$state/summary"
  if [ "$status" -ne 0 ]; then
    grep --quiet ' sent, .* rejected' "$state/summary" || exit 1
    ! grep --quiet 'not sent or without a response' "$state/summary" || exit 1
  fi
  tail -n 1 "$state/records" | jq --raw-output .__CURSOR >"$state/cursor.new"
  mv "$state/cursor.new" "$state/cursor"
done
