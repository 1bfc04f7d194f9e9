#!/usr/bin/env bash
# Prepares the programs and libraries of the tests of docs/sources in folders of FOLDER. Each test skips what is missing.
#
#   tools/source-programs.sh FOLDER
set -uo pipefail
tools=$(dirname "$0")
for name in syslog-programs:syslog log4j:log4j otel-examples:otel-examples; do
  timeout 180 "$tools/${name%%:*}.sh" "$1/${name#*:}" || echo "${name%%:*} could not be prepared"
done
