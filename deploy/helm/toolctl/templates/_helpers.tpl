{{- define "toolctl.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "toolctl.selector" -}}
app.kubernetes.io/name: toolctl
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "toolctl.operatorSelector" -}}
app.kubernetes.io/name: toolctl-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "toolctl.labels" -}}
app.kubernetes.io/part-of: toolctl
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "toolctl.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "toolctl.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "toolctl.storeEnv" -}}
- name: TOOLCTL_STORE
  valueFrom:
    secretKeyRef:
      name: {{ .Values.store.existingSecret }}
      key: {{ .Values.store.key }}
{{- end -}}

{{- define "toolctl.storeArgs" -}}
- --store-max-connections={{ .Values.store.maxConnections }}
{{- with .Values.permissions.exec }}
- {{ printf "--allow-exec=%s" . | quote }}
{{- end }}
{{- with .Values.permissions.unsandboxed }}
- {{ printf "--allow-unsandboxed=%s" . | quote }}
{{- end }}
{{- with .Values.permissions.command }}
- {{ printf "--allow-command=%s" . | quote }}
{{- end }}
{{- with .Values.permissions.privateNetwork }}
- {{ printf "--allow-private-network=%s" . | quote }}
{{- end }}
{{- with .Values.permissions.env }}
- {{ printf "--allow-env=%s" . | quote }}
{{- end }}
{{- end -}}
