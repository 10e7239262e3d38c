package main

import (
	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/pkg/action"
)

// setOptions are the flags that apply and diff have in common: which objects of the files, and of which set.
type setOptions struct {
	*app
	set action.Selection
}

func (o *setOptions) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.set.Prune, "prune", false, "delete objects of this set that the files no longer contain")
	f.BoolVar(&o.set.AllowEmpty, "allow-empty", false, "allow --prune to delete the whole set when no manifests are found")
	o.bindSelector(f, "objects")
	f.StringVar(&o.set.Set, "set", "", "name of the set (default: the paths given with -f)")
	f.BoolVar(&o.set.TakeOver, "take-over", false, "move objects from other sets into this set")
}

// selection is what the flags choose.
func (o *setOptions) selection() action.Selection {
	s := o.set
	s.Selector = o.selector
	return s
}
