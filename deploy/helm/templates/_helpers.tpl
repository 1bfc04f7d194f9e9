{{/* Short enough for the suffixes of all objects. */}}
{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Arguments: root, component. */}}
{{- define "sluice.selectorLabels" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Arguments: root, component. */}}
{{- define "sluice.labels" -}}
{{ include "sluice.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{/* Arguments: root, program (api, query, worker, cli), image (the values that override it). */}}
{{- define "sluice.image" -}}
{{- $repository := default (printf "%s-%s" .root.Values.image.repository .program) .image.repository -}}
{{- $tag := coalesce .image.tag .root.Values.image.tag .root.Chart.AppVersion -}}
{{- printf "%s:%s" $repository $tag -}}
{{- end -}}

{{/* What all pods have in common. */}}
{{- define "sluice.podDefaults" -}}
automountServiceAccountToken: false
{{- /* Variables such as SLUICE_API_PORT, one for each Service of the namespace, are not settings. */}}
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "sluice.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Where the pods of a component run. Arguments: root, component, values. */}}
{{- define "sluice.placement" -}}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $spread := .values.topologySpread }}
{{- if or $spread.hostname $spread.zone }}
topologySpreadConstraints:
{{- range $key, $when := dict "kubernetes.io/hostname" $spread.hostname "topology.kubernetes.io/zone" $spread.zone }}
  {{- if $when }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: {{ $when }}
    labelSelector:
      matchLabels: {{- include "sluice.selectorLabels" $ | nindent 8 }}
    # Pods of the former version do not count.
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* An integer of the values: YAML's large integers arrive as floating-point numbers. */}}
{{- define "sluice.settingText" -}}
{{- if kindIs "float64" . -}}{{ printf "%.0f" . }}{{- else -}}{{ toString . }}{{- end -}}
{{- end -}}

{{- define "sluice.shutdownSeconds" -}}
{{- divf (default 8000 .Values.settings.SHUTDOWN_DEADLINE_MS) 1000 | ceil | int -}}
{{- end -}}

{{/* Time after the shutdown deadline until SIGKILL: the log is flushed (0.5 s), and the node may be busy. */}}
{{- define "sluice.killMarginSeconds" -}}5{{- end -}}

{{/* Environment variables for Redis. */}}
{{- define "sluice.redisEnvironment" -}}
{{- with .Values.redis }}
- name: REDIS_URL
{{- if .url }}
  value: {{ .url | quote }}
{{- else }}
  valueFrom: { secretKeyRef: { name: {{ required "set redis.url, or redis.existingSecret with the URL" .existingSecret }}, key: {{ .keys.url }} } }
{{- end }}
{{- if .keys.sentinelPassword }}
- name: REDIS_SENTINEL_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ required "redis.keys.sentinelPassword needs redis.existingSecret" .existingSecret }}, key: {{ .keys.sentinelPassword }} } }
{{- end }}
{{- if or .ca.secret .ca.configMap }}
- name: REDIS_TLS_CA_FILE
  value: /etc/sluice/redis/{{ .ca.key }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Environment variables for ClickHouse. Arguments: root, user (the values with the names of its keys; by default its Secret is that with the URL). */}}
{{- define "sluice.clickhouseEnvironment" -}}
{{- $user := .user }}
{{- with .root.Values.clickhouse }}
- name: CLICKHOUSE_URL
{{- if .url }}
  value: {{ .url | quote }}
{{- else }}
  valueFrom: { secretKeyRef: { name: {{ required "set clickhouse.url, or clickhouse.existingSecret with the URL" .existingSecret }}, key: {{ .keys.url }} } }
{{- end }}
{{- with default .existingSecret $user.existingSecret }}
{{- $secret := . }}
{{- with $user.keys.username }}
- name: CLICKHOUSE_USERNAME
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ . }} } }
{{- end }}
{{- with $user.keys.password }}
- name: CLICKHOUSE_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ . }} } }
{{- end }}
{{- end }}
{{- if or .ca.secret .ca.configMap }}
- name: CLICKHOUSE_TLS_CA_FILE
  value: /etc/sluice/clickhouse/{{ .ca.key }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The mounts of certificate authorities. Arguments: root, servers (a list of redis, clickhouse). */}}
{{- define "sluice.caMounts" -}}
{{- range $server := .servers }}
{{- $ca := (index $.root.Values $server).ca }}
{{- if or $ca.secret $ca.configMap }}
- { name: {{ $server }}-ca, mountPath: /etc/sluice/{{ $server }}, readOnly: true }
{{- end }}
{{- end }}
{{- end -}}

{{- define "sluice.caVolumes" -}}
{{- range $server := .servers }}
{{- $ca := (index $.root.Values $server).ca }}
{{- if $ca.secret }}
- name: {{ $server }}-ca
  secret: { secretName: {{ $ca.secret }}, items: [{ key: {{ $ca.key }}, path: {{ $ca.key }} }] }
{{- else if $ca.configMap }}
- name: {{ $server }}-ca
  configMap: { name: {{ $ca.configMap }}, items: [{ key: {{ $ca.key }}, path: {{ $ca.key }} }] }
{{- end }}
{{- end }}
{{- end -}}

{{/* Probes of all processes, on the ops port. They answer from memory. */}}
{{- define "sluice.probes" -}}
startupProbe:
  httpGet: { path: /livez, port: ops }
  periodSeconds: 1
  timeoutSeconds: 4
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /livez, port: ops }
  periodSeconds: 10
  timeoutSeconds: 4
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: ops }
  periodSeconds: 5
  timeoutSeconds: 4
  failureThreshold: 2
{{- end -}}

{{/* The egress rules of a NetworkPolicy. Arguments: root, servers. */}}
{{- define "sluice.egress" -}}
{{- $policy := .root.Values.networkPolicy -}}
- ports:
    - { port: 53, protocol: UDP }
    - { port: 53, protocol: TCP }
  {{- with $policy.dnsTo }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- range $server := .servers }}
- ports:
    {{- range index $policy (printf "%sPorts" $server) }}
    - { port: {{ . }}, protocol: TCP }
    {{- end }}
  {{- with index $policy (printf "%sTo" $server) }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}
