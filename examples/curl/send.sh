#!/bin/sh
# Sends one entry. curl retries with the same Idempotency-Key if there is no answer, or one with a transient error (429, 5xx).
#
#   SLUICE_API_URL=https://logs.example.com SLUICE_API_KEY=slk_… ./send.sh "Backup finished"
set -eu
message=$(printf '%s' "$1" | sed 's/\\/\\\\/g; s/"/\\"/g' | tr '\n\t\r' '   ')
answer=$(curl --silent --show-error --write-out ' (status %{http_code})' \
  --max-time 40 --retry 8 --retry-all-errors --retry-max-time 300 \
  --header "Authorization: Bearer $SLUICE_API_KEY" \
  --header 'Content-Type: application/json' \
  --header "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)" \
  --data "{\"level\":\"info\",\"message\":\"$message\",\"service\":\"backup\",\"metadata\":{\"host\":\"$(uname -n)\"}}" \
  "$SLUICE_API_URL/v1/logs")
case $answer in
  *'(status 202)') ;;
  *) printf '%s\n' "$answer" >&2; exit 1 ;;
esac
