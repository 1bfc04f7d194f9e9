#!/usr/bin/env bash
# Unpacks Redis 8.0 and Valkey 8.1 of Debian 13 into a folder, as programs that also run on Debian 12. Installs nothing, needs no root.
#
#   tools/newer-redis.sh FOLDER
#
# Puts a program `redis-server` into FOLDER/redis8 and into FOLDER/valkey8. Either folder can be put at the start of the PATH.
set -euo pipefail
folder=$(realpath -m "$1")
mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -1 || true)
mirror=${mirror:-http://deb.debian.org/debian}
mkdir -p "$folder"/{root,lists/partial,archives/partial,redis8,valkey8}
: >"$folder/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror% } trixie main" >"$folder/sources.list"

apt=(apt-get -qq -o Dir::Etc::SourceList="$folder/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$folder/lists"
  -o Dir::State::Status="$folder/status" -o Dir::Cache::Archives="$folder/archives" -o Dir::Cache::PkgCache= -o Dir::Cache::SrcPkgCache=
  -o APT::Default-Release= -o APT::Sandbox::User= -o Debug::NoLocking=true)
"${apt[@]}" update
"${apt[@]}" install --download-only -y --no-install-recommends redis-tools valkey-tools
for package in "$folder"/archives/*.deb; do dpkg-deb --extract "$package" "$folder/root"; done

# The checkers are the server's program, which decides by its name what it does.
for name in redis valkey; do
  cat >"$folder/${name}8/redis-server" <<WRAPPER
#!/bin/sh
exec "$(echo "$folder"/root/usr/lib/*-linux-gnu/ld-linux-*.so.*)" --argv0 $name-server --library-path "$(echo "$folder"/root/usr/lib/*-linux-gnu)" "$folder/root/usr/bin/$name-check-rdb" "\$@"
WRAPPER
  chmod +x "$folder/${name}8/redis-server"
  "$folder/${name}8/redis-server" --version
done
