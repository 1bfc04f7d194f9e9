#!/usr/bin/env bash
# Downloads the libraries of the example with Log4j 2 from Maven Central into a folder. Does nothing if the folder has them.
#
#   tools/log4j.sh FOLDER
set -euo pipefail
folder=$1 version=2.26.1
mkdir -p "$folder"
fetch() {
  local file="$1-$version.jar"
  [ ! -e "$folder/$file" ] || return 0
  local new; new=$(mktemp "$folder/new.XXXXXX")
  curl -fsS -m 120 -o "$new" "https://repo1.maven.org/maven2/org/apache/logging/log4j/$1/$version/$file" &&
    echo "$2  $new" | sha256sum --check --status && mv "$new" "$folder/$file" && return 0
  rm -f "$new"
  echo "$file cannot be downloaded, or has another checksum" >&2
  return 1
}
fetch log4j-api f1810a4704ccce019d02bba029dc02a4f2ac0c997f647b465e7d409c1927f822
fetch log4j-core 2ec8c3bf5a6d7c89be8620116a2fc973f7dda1ad0261ad393c4d4726edfd3dcb
fetch log4j-layout-template-json 91783f86db7f17700e4c4b4c2a1ea14132485d4faee91a11ff62fb6320eb26f7
