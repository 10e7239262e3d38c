package schema

// hints are the keywords that constrain values of one type.
var hints = []struct {
	kind     string
	keywords []string
}{
	{"object", []string{"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties", "dependentRequired"}},
	{"array", []string{"items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"}},
	{"string", []string{"pattern", "minLength", "maxLength", "format"}},
	{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
}

// Types returns the types that a schema names. If it names none, the result is the type that its other keywords
// suggest, or nil.
func Types(o Object) []string {
	switch t, _ := o.Get("type"); t := t.(type) {
	case string:
		return []string{t}
	case []any:
		var all []string
		for _, one := range t {
			if name, ok := one.(string); ok {
				all = append(all, name)
			}
		}
		return all
	}
	for _, hint := range hints {
		for _, keyword := range hint.keywords {
			if _, ok := o.Get(keyword); ok {
				return []string{hint.kind}
			}
		}
	}
	return nil
}
