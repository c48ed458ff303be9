// Pins the prometheus-operator, whose module carries its CustomResourceDefinitions as files. Nothing of it is compiled; a module of its
// own, so that its dependencies choose no versions for kube-score.
module prometheus

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
