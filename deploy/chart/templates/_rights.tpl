{{- /* Rights in the namespaces of tenants. src/commands/tenant_rights.cc has the same rules for
`hangar tenant allow`, and a test compares them. */}}

{{- /* Whether the API server knows constrained impersonation: beta and on in 1.36. */}}
{{- define "hangar.constrainedImpersonation" -}}
{{- if eq .Values.rbac.impersonation "Constrained" }}true
{{- else if eq .Values.rbac.impersonation "Auto" }}
{{- if semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version }}true{{ end }}
{{- end }}
{{- end }}

{{- /* The entries of `tenants` as {"tenants": [{namespace, serviceAccounts, clusterReach}]}, in JSON. */}}
{{- define "hangar.tenants" -}}
{{- $tenants := list }}
{{- if not (kindIs "string" .Values.tenants) }}
{{- range .Values.tenants }}
{{- $tenant := kindIs "string" . | ternary (dict "namespace" .) . }}
{{- $names := $tenant.serviceAccounts | default $.Values.rbac.impersonatedServiceAccounts }}
{{- if and (eq $tenant.namespace $.Release.Namespace) (or (not $names) (has (include "hangar.serviceAccountName" $) $names)) }}
{{- fail (printf "tenants: %s is the release's own namespace: an Operator there could act as the ServiceAccount %s itself. Name the serviceAccounts of that entry" $.Release.Namespace (include "hangar.serviceAccountName" $)) }}
{{- end }}
{{- $tenants = append $tenants (dict "namespace" $tenant.namespace "serviceAccounts" ($names | default list) "clusterReach" ($tenant.clusterReach | default false)) }}
{{- end }}
{{- end }}
{{- dict "tenants" $tenants | toJson }}
{{- end }}

{{- /* Whether every namespace is a tenant's. */}}
{{- define "hangar.allNamespaces" -}}
{{- if kindIs "string" .Values.tenants }}true{{ end }}
{{- end }}

{{- /* The rules of one namespace, or of all. Given: root, serviceAccounts, constrained. */}}
{{- define "hangar.tenantRules" -}}
{{- $features := .root.Values.features }}
{{- if or $features.flights $features.operators $features.workflows (and $features.airways .serviceAccounts) }}
# Act as service accounts only: no user and no group can be impersonated.
{{- if .constrained }}
- apiGroups: [authentication.k8s.io]
  resources: [serviceaccounts]
  verbs: ["impersonate:serviceaccount"]
  {{- with .serviceAccounts }}
  resourceNames: {{ toYaml . | nindent 2 }}
  {{- end }}
# In this namespace, as far as their own rights allow.
- apiGroups: ["*"]
  resources: ["*"]
  verbs:
  {{- range list "get" "list" "watch" "create" "update" "patch" "delete" "deletecollection" }}
  - impersonate-on:serviceaccount:{{ . }}
  {{- end }}
{{- else }}
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [impersonate]
  {{- with .serviceAccounts }}
  resourceNames: {{ toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}
{{- if or $features.airways $features.flights $features.operators $features.workflows }}
# Modules in ConfigMaps, and changes to them.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch]
{{- end }}
{{- if $features.operators }}
# The sources of operators' environment and files.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
{{- end }}
{{- if or $features.flights $features.workflows }}
# Copies of the modules that Flights and workflows are pinned to.
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get, list, create, delete]
{{- end }}
{{- if or $features.airways $features.flights }}
# The history of releases, beside their instances.
- apiGroups: [""]
  resources: [secrets]
  verbs: [list, create, patch, delete]
# Whether a Service has endpoints.
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list]
{{- end }}
{{- end }}
