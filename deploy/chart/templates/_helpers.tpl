{{- define "hangar.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "hangar.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "hangar.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "hangar.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "hangar.selectorLabels" -}}
app.kubernetes.io/name: {{ include "hangar.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hangar.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "hangar.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "hangar.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "hangar.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* KWasm's values file names KWasm's operator, which is another program. */}}
{{- define "hangar.image" -}}
{{- if or (regexMatch "(^|/)kwasm-operator$" .Values.image.repository) (hasPrefix "kwasm-operator-" .Values.image.tag) }}
{{- fail (printf "image: %s:%s is KWasm's operator, not hangar: give image.repository (where the images of deploy/images were pushed to) and image.tag of hangar; the rest of KWasm's values file may stay" .Values.image.repository .Values.image.tag) }}
{{- end -}}
{{ required "image.repository: say where the images of deploy/images were pushed to" .Values.image.repository }}
{{- with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The names of the features that are on, separated by commas. */}}
{{- define "hangar.features" -}}
{{- $on := list }}
{{- range $name, $is_on := .Values.features }}
{{- if $is_on }}{{ $on = append $on $name }}{{ end }}
{{- end }}
{{- if not $on }}{{ fail "every feature is off: switch one of .Values.features on" }}{{ end }}
{{- join "," $on }}
{{- end }}

{{- /* The names of pull secrets for the Jobs on nodes, separated by commas. */}}
{{- define "hangar.nodePullSecrets" -}}
{{- $names := list }}
{{- range .Values.nodes.imagePullSecrets | default .Values.imagePullSecrets }}{{ $names = append $names .name }}{{ end }}
{{- join "," $names }}
{{- end }}

{{- /* FILE[@ARCHITECTURE]=URL#sha256:HEX[#program-sha256:HEX], separated by commas, as the host reads them. */}}
{{- define "hangar.nodeRuntimes" -}}
{{- $runtimes := list }}
{{- range .Values.nodes.runtimes }}
{{- $name := empty .architecture | ternary .file (printf "%s@%s" .file .architecture) }}
{{- $isArchive := regexMatch "\\.(tar\\.gz|tgz)(\\?.*)?$" .url }}
{{- if and $isArchive (not .programSha256) }}
{{- fail (printf "nodes.runtimes: %s: programSha256 is missing: the checksum of %s in the archive" .url .file) }}
{{- end }}
{{- $program := $isArchive | ternary (printf "#program-sha256:%s" .programSha256) "" }}
{{- $runtimes = append $runtimes (printf "%s=%s#sha256:%s%s" $name .url .sha256 $program) }}
{{- end }}
{{- join "," $runtimes }}
{{- end }}

{{- /* The Secret with the key that signs compiled code on a volume. */}}
{{- define "hangar.codeCacheKey" -}}
{{- .Values.cache.keySecret | default (printf "%s-code-cache" (include "hangar.fullname" .)) }}
{{- end }}

{{- /* The subject of the rights. */}}
{{- define "hangar.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "hangar.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* The host's configuration file: `settings`, on top of the settings behind tenantPolicy.defaults. */}}
{{- define "hangar.settings" -}}
{{- $defaults := dict }}
{{- if eq .Values.tenantPolicy.defaults "team" }}
{{- /* More than any host has, because the memory of all guests bounds it. */}}
{{- $defaults = dict "moduleAddressAllowList" (list "private") "namespaceGuestMemory" "1024Gi" }}
{{- end }}
{{- toYaml (merge (deepCopy .Values.settings) $defaults) }}
{{- end }}

{{- /* Whether webhooks are served: for Airways and Flights, and for operators. */}}
{{- define "hangar.webhooks" -}}
{{- if and .Values.webhooks.enabled (or .Values.features.airways .Values.features.flights .Values.features.operators) }}true{{ end }}
{{- end }}

{{- /* Whether those of operators are, which only the replica that leads runs. */}}
{{- define "hangar.operatorWebhooks" -}}
{{- if and .Values.webhooks.enabled .Values.features.operators }}true{{ end }}
{{- end }}

{{- /* Whether records are shown: of operators' turns. */}}
{{- define "hangar.records" -}}
{{- if and .Values.records.enabled .Values.features.operators }}true{{ end }}
{{- end }}
