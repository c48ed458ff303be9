#!/usr/bin/env bash
# What judges the chart beside the control plane: kube-score, pinned by the go.mod of this folder; helm 3, which the go.mod of the
# control plane pins as a tool; and the definitions of PodMonitor and ServiceMonitor, files of a module that prometheus/go.mod pins.
# Does nothing when all was made from these very files. A minute from nothing, after ../cluster/build.sh.
set -euo pipefail
. "$(dirname "$0")/../cluster/env.sh"
cluster=$HERE tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$BIN"
exec 9>"$BIN/.lock-tools"
flock 9 # a second build waits for the first, and then has nothing to do
PATH=$PATH:/usr/local/go/bin:$STATE/go/bin # the latter is where ../cluster/build.sh puts a Go of its own

fresh() { # mark wanted files...: whether the files are there, and the mark says that they were made from what is wanted
  local mark=$1 wanted=$2 file
  shift 2
  for file in "$@"; do [ -s "$BIN/$file" ] || return 1; done
  [ "$(cat "$BIN/$mark" 2>/dev/null)" = "$wanted" ]
}
need_go() { command -v go >/dev/null || { echo "build.sh: $1 takes Go 1.26 or newer: run ../cluster/build.sh first" >&2; exit 1; }; }
hash() { cat "$@" | sha256sum | cut -d' ' -f1; }
build() { (cd "$1" && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$BIN/$2" "$3"); }

wanted=$(hash "$tools"/go.{mod,sum} "$cluster"/go.{mod,sum})
if ! fresh .tools-built-from "$wanted" kube-score helm3; then
  need_go "building kube-score and helm 3"
  echo "build.sh: building kube-score and helm 3 into $BIN" >&2
  build "$tools" kube-score github.com/zegl/kube-score/cmd/kube-score
  build "$cluster" helm3 helm.sh/helm/v3/cmd/helm
  echo "$wanted" >"$BIN/.tools-built-from"
fi

wanted=$(hash "$tools"/prometheus/go.{mod,sum})
definitions=(prometheus/monitoring.coreos.com_{podmonitors,servicemonitors}.yaml)
if ! fresh .prometheus-from "$wanted" "${definitions[@]}"; then
  need_go "fetching the definitions of the prometheus-operator"
  echo "build.sh: fetching the definitions of the prometheus-operator into $BIN" >&2
  mkdir -p "$BIN/prometheus"
  module=$(cd "$tools/prometheus" && go mod download -json github.com/prometheus-operator/prometheus-operator)
  folder=$(sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p' <<<"$module")
  for file in "${definitions[@]}"; do # of a module's folder nothing can be written, its copies can
    install -m 644 "$folder/example/prometheus-operator-crd/${file#*/}" "$BIN/$file"
  done
  echo "$wanted" >"$BIN/.prometheus-from"
fi
