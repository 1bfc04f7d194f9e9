#!/usr/bin/env bash
# Installs Deno and Bun from npm in a folder, for the tests of the client, which find them in its bin.
#
#   tools/other-runtimes.sh FOLDER
set -euo pipefail
folder=$(realpath -m "$1")
mkdir -p "$folder/bin"
npm install --prefix "$folder" --no-save --no-audit --no-fund --no-package-lock --silent deno@2.9.6 bun@1.4.5
for name in deno bun; do
  ln -sf "$folder/node_modules/.bin/$name" "$folder/bin/$name"
  "$folder/bin/$name" --version
done
