{{- define "turnout.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "turnout.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "turnout.name" . -}}
{{- $release := .Release.Name | replace "." "-" -}}{{/* the name of a Service has no dot */}}
{{- if contains $name $release -}}
{{- $release | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" $release $name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Of what has no namespace: two releases of one name do not meet, not even where long names are cut. */}}
{{- define "turnout.clusterName" -}}
{{- $whole := printf "%s-%s" (include "turnout.fullname" .) .Release.Namespace -}}
{{- if gt (len $whole) 63 -}}
{{- printf "%s-%s" ($whole | trunc 54 | trimSuffix "-") ($whole | sha256sum | trunc 8) -}}
{{- else -}}
{{- $whole -}}
{{- end -}}
{{- end -}}

{{- define "turnout.selectorLabels" -}}
app.kubernetes.io/name: {{ include "turnout.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "turnout.labels" -}}
{{ include "turnout.selectorLabels" . }}
app.kubernetes.io/part-of: turnout
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The same labels for what is not the operator: its Service and budget must not select it. */}}
{{- define "turnout.testLabels" -}}
{{ include "turnout.labels" . | replace "app.kubernetes.io/component: operator" "app.kubernetes.io/component: test" }}
{{- end -}}

{{/* (context, annotations of the object's own, indentation): those and the common ones on lines of their own; no line when there are none. */}}
{{- define "turnout.annotations" -}}
{{- with merge (dict) (default dict (index . 1)) (default dict (first .).Values.commonAnnotations) -}}
{{- print "annotations:\n" (toYaml . | indent 2) | nindent (int (last $)) -}}
{{- end -}}
{{- end -}}

{{/* What restricts every container of the chart's own. */}}
{{- define "turnout.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "turnout.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "turnout.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "turnout.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "turnout.routerImage" -}}
{{- with .Values.router.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Names of the namespaces that are served, as JSON in a key, since a template gives text only. */}}
{{- define "turnout.namespaces" -}}
{{- dict "names" (default (list .Release.Namespace) .Values.watchNamespaces) | toJson -}}
{{- end -}}

{{- define "turnout.healthService" -}}
{{- printf "%s-health" (include "turnout.fullname" .) -}}
{{- end -}}

{{/* Of a PodMonitor. */}}
{{- define "turnout.monitoredNamespaces" -}}
{{- if .Values.clusterWide -}}
any: true
{{- else -}}
matchNames:
{{- range (include "turnout.namespaces" . | fromJson).names }}
- {{ . | quote }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Values that do not go together. */}}
{{- define "turnout.check" -}}
{{- if .Values.clusterWide -}}
{{- if .Values.watchNamespaces -}}
{{- fail "clusterWide serves every namespace: leave watchNamespaces empty, or set clusterWide=false" -}}
{{- end -}}
{{- if .Values.networkPolicy.nodes -}}
{{- fail "networkPolicy.nodes is made for each of watchNamespaces: with clusterWide=true make that policy yourself, or set networkPolicy.nodes=false" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.networkPolicy.nodes (not .Values.networkPolicy.enabled) -}}
{{- fail "networkPolicy.nodes needs networkPolicy.enabled=true: without it no policy is made" -}}
{{- end -}}
{{- end -}}

{{/* With which masters write what people change. */}}
{{- define "turnout.adminRole" -}}
{{- printf "%s-admin" (include (.Values.clusterWide | ternary "turnout.clusterName" "turnout.fullname") .) -}}
{{- end -}}

{{/* As annotations, of whom cert-manager tells the API server to trust. */}}
{{- define "turnout.trusts" -}}
{{- if .Values.webhook.certManager.enabled -}}
cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "turnout.fullname" . }}-webhook
{{- end -}}
{{- end -}}
