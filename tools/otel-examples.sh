#!/usr/bin/env bash
# Prepares the examples with the OpenTelemetry SDKs in a folder: packages of npm and PyPI, and compiled programs. What needs Python or Go is
# left out where they are missing.
#
#   tools/otel-examples.sh FOLDER
set -euo pipefail
folder=$(realpath -m "$1") examples=$(realpath "$(dirname "$0")/../examples")

mkdir -p "$folder/js"
cp "$examples"/otel-js/{main.js,package.json} "$folder/js/"
npm install --prefix "$folder/js" --no-audit --no-fund --no-package-lock --silent

if command -v python3 >/dev/null; then
  [ -x "$folder/python/bin/python" ] || python3 -m venv "$folder/python"
  "$folder/python/bin/pip" install --quiet --requirement "$examples/otel-python/requirements.txt"
fi

if command -v go >/dev/null; then
  (cd "$examples/otel-go" && CGO_ENABLED=0 go build -o "$folder/go/example" .)
fi
