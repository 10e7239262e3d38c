package solve

// formatSamples are texts of the formats that JSON Schema defines (2020-12 validation, section
// 7.3). Some of the texts do not fit other formats.
var formatSamples = map[string][]string{
	"date-time":             {"2024-05-06T07:08:09Z", "2024-05-06T07:08:09.5+02:00"},
	"date":                  {"2024-05-06"},
	"time":                  {"07:08:09Z", "07:08:09+02:00"},
	"duration":              {"P1D", "PT5M"},
	"email":                 {"a@example.com"},
	"idn-email":             {"a@example.com", "ü@example.com"},
	"hostname":              {"example.com", "a"},
	"idn-hostname":          {"example.com", "ü.example"},
	"ipv4":                  {"192.0.2.1"},
	"ipv6":                  {"2001:db8::1"},
	"uri":                   {"https://example.com/a", "urn:a:b"},
	"uri-reference":         {"/a", "https://example.com/a"},
	"iri":                   {"https://example.com/a", "https://example.com/ü"},
	"iri-reference":         {"/a", "/ü"},
	"uuid":                  {"123e4567-e89b-12d3-a456-426614174000"},
	"uri-template":          {"/a/{b}", "https://example.com/{a}"},
	"json-pointer":          {"/a", ""},
	"relative-json-pointer": {"1/a", "0#"},
	"regex":                 {"a+", "x"},
	"period":                {"2024-05-06T07:08:09Z/P1D"},
	"semver":                {"1.2.3"},
}

// samples returns texts that are likely to have all formats.
func samples(formats []string) []string {
	var all []string
	for _, f := range formats {
		all = append(all, formatSamples[f]...)
	}
	return all
}
