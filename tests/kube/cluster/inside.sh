#!/usr/bin/env bash
# inside.sh COMMAND...: runs it in the network namespace of the cluster with a kubelet, as its administrator.
. "$(dirname "$0")/env.sh"
exec nsenter --net="/run/netns/$NETNS" env PATH="$PATH" KUBECONFIG="$RUN/admin.kubeconfig" "$@"
