#!/usr/bin/env bash
# Unpacks Chromium of this release of Debian into a folder, with the libraries and a font that it needs. Installs nothing, needs no root. Does
# nothing if the folder has it, or the PATH has one.
#
#   tools/chromium.sh FOLDER
#
# Puts a program `chromium` into FOLDER/bin, which can be put at the start of the PATH.
set -euo pipefail
folder=$(realpath -m "$1")
if [ -e "$folder/complete" ] || command -v chromium >/dev/null; then exit 0; fi
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[ -n "$release" ] || { echo 'this is no Debian that Chromium could be unpacked for'; exit 1; }
"$(dirname "$0")/unpack-packages.sh" "$folder" "$release" chromium fonts-dejavu-core fontconfig-config
root="$folder/root"
mkdir -p "$folder/bin"
sed "s|/usr/share/fonts|$root/usr/share/fonts|" "$root/etc/fonts/fonts.conf" >"$folder/fonts.conf"
cat >"$folder/bin/chromium" <<WRAPPER
#!/bin/sh
export LD_LIBRARY_PATH="$(echo "$root"/usr/lib/*-linux-gnu):$(echo "$root"/lib/*-linux-gnu)" FONTCONFIG_FILE="$folder/fonts.conf"
exec "$root/usr/lib/chromium/chromium" "\$@"
WRAPPER
chmod +x "$folder/bin/chromium"
"$folder/bin/chromium" --version
touch "$folder/complete"
