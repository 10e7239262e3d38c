package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres"
)

// BenchmarkServeStore compares a mock call over HTTP, with a counting policy and the audit, between a store in a
// SQLite file and a store in PostgreSQL. Each gateway is its own process, with 64 concurrent calls.
func BenchmarkServeStore(b *testing.B) {
	dir := b.TempDir()
	writeFile(b, filepath.Join(dir, "tools.yaml"), `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: count}
spec: {description: Count, input_schema: {type: object}, mock_result: {said: first}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: caps}
spec: {max_total_tool_calls: 1000000000}
`)
	writeFile(b, filepath.Join(dir, "tokens"), tokenLine("ann", "1"))
	for _, s := range []struct{ name, dsn string }{
		{"sqlite", filepath.Join(dir, "state.db")},
		{"postgres", newDatabase(b) + "&synchronous_commit=off"},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), []string{"apply", "-f", filepath.Join(dir, "tools.yaml"), "--store", s.dsn}, nil, &out, &errs); code != exitOK {
			b.Fatal(errs.String())
		}
		p := launchServe(b, again(b, "toolctl"), "--store", s.dsn, "--token-file", filepath.Join(dir, "tokens"), "--access-log", "none", "--principal-share", "1")
		http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 64
		b.Run(s.name, func(b *testing.B) {
			b.SetParallelism(32) // for each processor
			before := p.cpu(b)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					status, body, err := callAt(context.Background(), p.url, "count")
					if err != nil || status != http.StatusOK || !strings.Contains(body, "first") {
						b.Error(status, body, err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			b.ReportMetric(float64((p.cpu(b)-before).Microseconds())/float64(b.N), "serve-cpu-us/call")
		})
	}
}

// BenchmarkChangeServed measures the time from the commit of a change until three replicas serve it, and the processor
// time that one of them needs.
func BenchmarkChangeServed(b *testing.B) {
	for _, others := range []int{0, 1000} {
		b.Run(fmt.Sprintf("%d-tools", others+1), func(b *testing.B) {
			dsn := newDatabase(b)
			st, err := postgres.Open(b.Context(), dsn, store.Options{Create: true})
			if err != nil {
				b.Fatal(err)
			}
			defer st.Close()
			tool := func(name, said string) v1.Object {
				o := v1.NewObject(v1.KindTool).(*v1.Tool)
				o.Metadata.Name, o.Spec.Description = name, "A tool"
				o.Spec.InputSchema = []byte(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`)
				if name == "count" {
					o.Spec.InputSchema = []byte(`{"type":"object"}`)
				}
				o.Spec.MockResult = []byte(`{"said":"` + said + `"}`)
				return o
			}
			apply := func(objects ...v1.Object) {
				b.Helper()
				if _, err := st.Apply(b.Context(), objects, store.ApplyOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			var all []v1.Object
			for i := range others {
				all = append(all, tool(fmt.Sprint("other-", i), "x"))
			}
			apply(append(all, tool("count", "0"))...)
			dir := b.TempDir()
			writeFile(b, filepath.Join(dir, "tokens"), tokenLine("ann", "1"))
			var replicas []*program
			for range 3 {
				replicas = append(replicas, launchServe(b, again(b, "toolctl"), "--store", dsn, "--watch", "--token-file", filepath.Join(dir, "tokens"), "--access-log", "none"))
			}
			served := func(p *program, said string) {
				b.Helper()
				for {
					_, body, err := callAt(b.Context(), p.url, "count")
					if err != nil {
						b.Fatal(err)
					}
					if strings.Contains(body, `"said":"`+said+`"`) {
						return
					}
				}
			}
			for _, p := range replicas {
				served(p, "0")
			}
			var took []time.Duration
			n := 0
			before := replicas[2].cpu(b)
			for b.Loop() {
				n++
				said := fmt.Sprint(n)
				apply(tool("count", said))
				began := time.Now()
				for _, p := range replicas {
					served(p, said)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64((replicas[2].cpu(b)-before).Microseconds())/1000/float64(n), "cpu-ms/change")
		})
	}
}
