#!/usr/bin/env bash
# Unpacks Redis 8.0 and Valkey 8.1 of Debian 13 into a folder, as programs that also run on Debian 12. Installs nothing, needs no root.
#
#   tools/newer-redis.sh FOLDER
#
# Puts a program `redis-server` into FOLDER/redis8 and into FOLDER/valkey8. Either folder can be put at the start of the PATH.
set -euo pipefail
folder=$(realpath -m "$1")
"$(dirname "$0")/unpack-packages.sh" "$folder" trixie redis-tools valkey-tools
mkdir -p "$folder"/{redis8,valkey8}

# The checkers are the server's program, which decides by its name what it does.
for name in redis valkey; do
  cat >"$folder/${name}8/redis-server" <<WRAPPER
#!/bin/sh
exec "$(echo "$folder"/root/usr/lib/*-linux-gnu/ld-linux-*.so.*)" --argv0 $name-server --library-path "$(echo "$folder"/root/usr/lib/*-linux-gnu)" "$folder/root/usr/bin/$name-check-rdb" "\$@"
WRAPPER
  chmod +x "$folder/${name}8/redis-server"
  "$folder/${name}8/redis-server" --version
done
