#!/usr/bin/env bash
# Unpacks nginx 1.30 of Debian 14 into a folder, as a program that also runs on Debian 12: the proxy of Compose needs 1.27.3, and
# Debian 13 has 1.26. Installs nothing, needs no root.
#
#   tools/newer-nginx.sh FOLDER
#
# Puts a program `nginx` into FOLDER/bin, which can be put at the start of the PATH.
set -euo pipefail
folder=$(realpath -m "$1")
"$(dirname "$0")/unpack-packages.sh" "$folder" forky nginx
mkdir -p "$folder/bin"
cat >"$folder/bin/nginx" <<WRAPPER
#!/bin/sh
exec "$(echo "$folder"/root/usr/lib/*-linux-gnu/ld-linux-*.so.*)" --argv0 nginx --library-path "$(echo "$folder"/root/usr/lib/*-linux-gnu)" "$folder/root/usr/sbin/nginx" "\$@"
WRAPPER
chmod +x "$folder/bin/nginx"
"$folder/bin/nginx" -v
