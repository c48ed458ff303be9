#!/usr/bin/env bash
# What judges the chart beside the control plane: kube-score, pinned by the go.mod of this folder, and helm 3, which the go.mod of the
# control plane pins as a tool. Does nothing when both were built from these very files. A minute from nothing, after ../cluster/build.sh.
set -euo pipefail
. "$(dirname "$0")/../cluster/env.sh"
cluster=$HERE tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$BIN"
exec 9>"$BIN/.lock-tools"
flock 9 # a second build waits for the first, and then has nothing to do
wanted=$(cat "$tools"/go.{mod,sum} "$cluster"/go.{mod,sum} | sha256sum | cut -d' ' -f1)
if [ -x "$BIN/kube-score" ] && [ -x "$BIN/helm3" ] && [ "$(cat "$BIN/.tools-built-from" 2>/dev/null)" = "$wanted" ]; then exit 0; fi
PATH=$PATH:/usr/local/go/bin:$STATE/go/bin # the latter is where ../cluster/build.sh puts a Go of its own
command -v go >/dev/null || { echo "build.sh: kube-score and helm 3 are built with Go 1.26 or newer: run ../cluster/build.sh first" >&2; exit 1; }
echo "build.sh: building kube-score and helm 3 into $BIN" >&2
build() { (cd "$1" && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$BIN/$2" "$3"); }
build "$tools" kube-score github.com/zegl/kube-score/cmd/kube-score
build "$cluster" helm3 helm.sh/helm/v3/cmd/helm
echo "$wanted" >"$BIN/.tools-built-from"
