package action

import (
	"cmp"
	"slices"
	"strconv"

	"toolctl.dev/toolctl/internal/jsonpath"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
)

// parseSortBy returns a function that sorts objects by a field, or nil without a field. Objects without the
// field come first, then numbers, then text.
func parseSortBy(field string) (func([]registry.Item) ([]registry.Item, error), error) {
	if field == "" {
		return nil, nil
	}
	path, err := jsonpath.ParsePath(field)
	if err != nil {
		return nil, usagef("--sort-by: %w", err)
	}
	type keyed struct {
		item   registry.Item
		text   string
		number float64
		isText bool
	}
	return func(items []registry.Item) ([]registry.Item, error) {
		list, found := make([]keyed, len(items)), len(items) == 0
		for i, it := range items {
			raw, err := manifest.MarshalJSON(it.Object)
			if err != nil {
				return nil, err
			}
			doc, err := jsonpath.Decode(raw)
			if err != nil {
				return nil, err
			}
			values := path.Find(doc, doc)
			found = found || len(values) > 0
			k := keyed{item: it, text: jsonpath.Text(values)}
			if k.text != "" {
				k.number, err = strconv.ParseFloat(k.text, 64)
				k.isText = err != nil
			}
			list[i] = k
		}
		if !found {
			return nil, usagef("--sort-by %s: no object has this field", field)
		}
		slices.SortStableFunc(list, func(a, b keyed) int {
			switch {
			case b.isText && !a.isText:
				return -1
			case a.isText && !b.isText:
				return 1
			case !a.isText && a.text != "" && b.text != "" && a.number != b.number:
				return cmp.Compare(a.number, b.number)
			}
			return cmp.Compare(a.text, b.text)
		})
		for i, k := range list {
			items[i] = k.item
		}
		return items, nil
	}, nil
}
