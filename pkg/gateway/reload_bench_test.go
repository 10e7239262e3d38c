package gateway_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// distinct returns a tool that differs from all others.
func distinct(i, version int) *v1.Tool {
	t := &v1.Tool{}
	t.APIVersion, t.Kind, t.Metadata = v1.APIVersion, v1.KindTool, v1.Metadata{Name: fmt.Sprintf("tool-%05d", i), Labels: map[string]string{"team": fmt.Sprint(i % 50)}}
	t.Spec.Description = fmt.Sprintf("Looks number %d up, version %d.", i, version)
	t.Spec.InputSchema = json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{"id_%d":{"type":"string","description":"The number.","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":%d}},"required":["id_%d"]}`, i, i+10, i))
	t.Spec.OutputSchema = json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}}}`)
	t.Spec.MockResult = json.RawMessage(`{"ok":true}`)
	return t
}

// BenchmarkReload serves one changed tool among n, from a store and from a folder. The floors are the changes alone.
func BenchmarkReload(b *testing.B) {
	for _, n := range []int{1000, 20_000} {
		all := make([]v1.Object, n)
		for i := range n {
			all[i] = distinct(i, 0)
		}
		path := filepath.Join(b.TempDir(), "state.db")
		st, err := sqlite.Open(b.Context(), path, store.Options{Create: true})
		if err != nil {
			b.Fatal(err)
		}
		defer st.Close()
		apply := func(objects ...v1.Object) {
			if _, err := st.Apply(b.Context(), objects, store.ApplyOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		apply(all...)
		dir := b.TempDir()
		write := func(o v1.Object) {
			text, err := manifest.MarshalYAML(o)
			if err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, o.Head().Metadata.Name+".yaml"), text, 0o600); err != nil {
				b.Fatal(err)
			}
		}
		for _, o := range all {
			write(o)
		}
		version := 0
		reload := func(o gateway.Options, change func(v1.Object)) func(*testing.B) {
			return func(b *testing.B) {
				g, err := gateway.Open(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				defer g.Close()
				g.Handler()
				one := func() {
					version++
					change(distinct(version%n, version))
					if err := g.Reload(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				one() // the first one checks all tools
				for b.Loop() {
					one()
				}
			}
		}
		floor := func(change func(v1.Object)) func(*testing.B) {
			return func(b *testing.B) {
				for b.Loop() {
					version++
					change(distinct(version%n, version))
				}
			}
		}
		applyOne := func(o v1.Object) { apply(o) }
		b.Run(fmt.Sprintf("store/tools=%d/floor", n), floor(applyOne))
		b.Run(fmt.Sprintf("store/tools=%d/reload", n), reload(gateway.Options{Store: st}, applyOne))
		b.Run(fmt.Sprintf("files/tools=%d/floor", n), floor(write))
		b.Run(fmt.Sprintf("files/tools=%d/reload", n), reload(gateway.Options{Source: gateway.Files(manifest.Options{}, dir)}, write))
	}
}
