package wirename_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toolctl.dev/toolctl/internal/wirename"
)

func named(names ...string) []wirename.ID {
	var all []wirename.ID
	for _, full := range names {
		namespace, name, _ := strings.Cut(full, "/")
		all = append(all, wirename.ID{Namespace: namespace, Name: name, Full: full})
	}
	return all
}

func TestNames(t *testing.T) {
	long := strings.Repeat("long-", 20)
	for _, tc := range []struct {
		name   string
		offers []string
		want   []string // "~" ends what a hash follows
	}{
		{name: "as they are", offers: []string{"default/get-weather", "default/files__read"}, want: []string{"get-weather", "files__read"}},
		{name: "two namespaces", offers: []string{"a/get", "b/get", "b/put"}, want: []string{"a__get", "b__get", "put"}},
		{name: "a dot", offers: []string{"default/weather.get"}, want: []string{"weather_get"}},
		{name: "a dot beside the legal name", offers: []string{"default/weather.get", "default/weather_get"}, want: []string{"default__weather_get", "weather_get"}},
		{name: "two that become one", offers: []string{"default/a.b_c", "default/a_b.c"}, want: []string{"a_b_c_~", "a_b_c_~"}},
		{name: "not ASCII", offers: []string{"default/møte"}, want: []string{"m_te"}},
		{name: "too long", offers: []string{"default/" + long}, want: []string{long[:55] + "_~"}},
		{name: "the long form is taken", offers: []string{"a/get", "b/get", "c/a__get"}, want: []string{"get_~", "b__get", "a__get"}},
		{name: "one server twice", offers: []string{"default/get", "default/get"}, want: []string{"get_~", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := wirename.Names(named(tc.offers...))
			for i, want := range tc.want {
				stem, hashed := strings.CutSuffix(want, "~")
				if hashed && (!strings.HasPrefix(got[i], stem) || len(got[i]) != len(stem)+8) || !hashed && got[i] != want {
					t.Errorf("%s is %q, want %q", tc.offers[i], got[i], want)
				}
			}
		})
	}
}

func TestNamesAreLegalUniqueAndIndependentOfOrder(t *testing.T) {
	wire := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	rapid.Check(t, func(t *rapid.T) {
		full := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab]/[ab._]{1,5}(x{60,70})?`), 0, 12, rapid.ID[string]).Draw(t, "names")
		names := wirename.Names(named(full...))
		by := map[string]string{}
		seen := map[string]bool{}
		for i, n := range names {
			if !wire.MatchString(n) {
				t.Fatalf("%s became %q", full[i], n)
			}
			if seen[n] {
				t.Fatalf("%q twice in %q", n, names)
			}
			seen[n], by[full[i]] = true, n
		}
		rand.Shuffle(len(full), func(i, j int) { full[i], full[j] = full[j], full[i] })
		for i, n := range wirename.Names(named(full...)) {
			if by[full[i]] != n {
				t.Fatalf("%s is %q in one order and %q in another", full[i], by[full[i]], n)
			}
		}
	})
}
