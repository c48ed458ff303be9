#!/usr/bin/env bash
# Images for the cluster with a kubelet, as files in $IMG: a base made by debootstrap, the two Dockerfiles of the repository on it, and
# examples/kubernetes/backends. Each file carries a hash of what it was made from, so nothing is made twice; $IMG/list names the
# files of this checkout. pip runs with this machine's settings and certificates, none of which stay in an image.
set -euo pipefail
. "$(dirname "$0")/env.sh"
release=bookworm packages=python3,python3-venv,python-is-python3,ca-certificates,libgomp1
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$ROOT/pyproject.toml")
mkdir -p "$IMG" "$STATE/pip" "$STATE/buildah"
exec 9>"$IMG/.lock"
flock 9 # a second run waits for the first, and then finds its files
work=$(mktemp -d)
storage=(--root "$STATE/buildah" --runroot "$STATE/buildah/run" --storage-driver overlay)
finish() { # an interrupted build leaves its container, and buildah a mount of its store
  buildah "${storage[@]}" rm --all >/dev/null 2>&1
  awk -v below="$STATE/buildah/" 'index($2, below) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount -l
  rm -rf "$work"
}
trap finish EXIT
rm -f "$IMG"/.new-*
list=()

hash() { # the folders' and files' content, and further words
  (
    cd "$ROOT"
    find "$@" -type f -not -path '*/__pycache__/*' -print0 2>/dev/null | sort -z | xargs -0 sha256sum
    printf '%s\n' "${salt:-}"
  ) | sha256sum | cut -c1-16
}
made() { # name hash make-function: $file is the file, made by the function unless it is there
  file=$IMG/$1-$2.tar
  list+=("$file")
  if [ -s "$file" ]; then touch "$file"; return 0; fi
  echo "images.sh: making the image $1" >&2
  "$3" "$IMG/.new-$1"
  mv "$IMG/.new-$1" "$file"
  ls -t "$IMG/$1"-*.tar | tail -n +4 | xargs -r rm -f # those of a few other checkouts stay
}

make_pause() {
  mkdir "$work/pause"
  gcc -Os -static -s -o "$work/pause/pause" "$HERE/pause.c"
  python3 "$HERE/mkimage.py" "$1" registry.local/pause:1 "$work/pause" /pause
}
make_python() { # stands in for python:3.11-slim; with libgomp1, because RUN steps reach no package mirror
  debootstrap --variant=minbase --include=$packages $release "$work/python" \
    >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; return 1; }
  rm -rf "$work/python"/var/{cache/apt,lib/apt/lists,log}/* "$work/python"/usr/share/{doc,man,locale,info}/* "$work/python"/dev/*
  python3 "$HERE/mkimage.py" "$1" registry.local/python:3.11 "$work/python"
}
built() { # file reference folder options...: a Dockerfile
  local file=$1 reference=$2 folder=$3 mine settings
  shift 3
  buildah "${storage[@]}" inspect --type image "$base" >/dev/null 2>&1 ||
    { buildah "${storage[@]}" pull -q "docker-archive:$base_file" && buildah "${storage[@]}" tag registry.local/python:3.11 "$base"; } >/dev/null
  mine=(-v /etc/ssl/certs/ca-certificates.crt:/etc/ssl/certs/ca-certificates.crt:ro -v "$STATE/pip:/root/.cache/pip:rw")
  for settings in "${PIP_CONFIG_FILE:-}" /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
    [ ! -s "$settings" ] || { mine+=(-v "$settings:/etc/pip.conf:ro"); break; }
  done
  [ ! -d "${PIP_FIND_LINKS:-}" ] || mine+=(-v "$PIP_FIND_LINKS:$PIP_FIND_LINKS:ro")
  buildah "${storage[@]}" bud --quiet --isolation chroot --network host --pull-never --layers --build-arg "BASE=$base" "${mine[@]}" "$@" \
    -t "$reference" "$folder" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; return 1; }
  buildah "${storage[@]}" push -q "$reference" "docker-archive:$file:$reference"
  buildah "${storage[@]}" rmi --prune >/dev/null 2>&1 || true # what newer builds replaced
}
make_operator() { built "$1" "docker.io/library/turnout-operator:$version" "$ROOT" -f "$ROOT/Dockerfile.operator"; }
make_router() { built "$1" "docker.io/library/turnout-router:$version" "$ROOT" -f "$ROOT/Dockerfile.sidecar"; }
make_backends() {
  # a build made from another checkout may have taken the name since
  buildah "${storage[@]}" pull -q "docker-archive:$router_file" >/dev/null
  built "$1" "docker.io/library/turnout-backends:$version" "$ROOT/examples/kubernetes/backends" \
    --build-arg "ROUTER=docker.io/library/turnout-router:$version"
}

machine=$(uname -m)
salt=$machine made pause "$(salt=$machine hash tests/kube/cluster/pause.c tests/kube/cluster/mkimage.py)" make_pause
base_hash=$(salt=$release,$packages hash tests/kube/cluster/mkimage.py)
made python "$base_hash" make_python
base=registry.local/python:$base_hash base_file=$file
sources=(pyproject.toml requirements.lock README.md LICENSE images crds operator sidecar cli)
made turnout-operator "$(salt=$base hash Dockerfile.operator "${sources[@]}")" make_operator
made turnout-router "$(salt=$base hash Dockerfile.sidecar "${sources[@]}")" make_router
router_file=$file
made turnout-backends "$(salt=$router_file hash examples/kubernetes/backends)" make_backends
printf '%s\n' "${list[@]}" | grep -v "/python-" >"$IMG/list" # the base is no pod's image
