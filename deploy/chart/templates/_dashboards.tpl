{{- /* A Grafana dashboard as JSON. Argument: the content of dashboards/NAME.yaml, with `name`. Two panels in a row. */}}
{{- define "hangar.dashboard" -}}
{{- $source := dict "type" "prometheus" "uid" "${datasource}" }}
{{- $panels := list }}
{{- range $index, $panel := .panels }}
{{- $targets := list }}
{{- range $number, $series := $panel.series }}
{{- $targets = append $targets (dict "refId" (printf "%c" (int (add 65 $number))) "datasource" $source "expr" $series.expr "legendFormat" $series.legend) }}
{{- end }}
{{- $place := dict "x" (mul 12 (mod $index 2)) "y" (mul 8 (div $index 2)) "w" 12 "h" 8 }}
{{- $field := dict "defaults" (dict "unit" $panel.unit "min" 0) "overrides" list }}
{{- $options := dict "tooltip" (dict "mode" "multi" "sort" "desc") "legend" (dict "displayMode" "list" "placement" "bottom") }}
{{- $panels = append $panels (dict "id" (add 1 $index) "type" "timeseries" "title" $panel.title "description" ($panel.description | default "")
      "datasource" $source "gridPos" $place "fieldConfig" $field "options" $options "targets" $targets) }}
{{- end }}
{{- $datasource := dict "name" "datasource" "label" "Data source" "type" "datasource" "query" "prometheus" }}
{{- $job := dict "name" "job" "label" "Job" "type" "query" "datasource" $source "refresh" 2 "includeAll" true "multi" true
      "current" (dict "text" "All" "value" "$__all") "query" (dict "refId" "job" "query" "label_values(hangar_operators, job)") }}
{{- dict "uid" (printf "hangar-%s" .name) "title" .title "description" .description "tags" (list "hangar") "schemaVersion" 39 "editable" true
      "refresh" "30s" "time" (dict "from" "now-6h" "to" "now") "templating" (dict "list" (list $datasource $job)) "panels" $panels | toPrettyJson }}
{{- end }}
