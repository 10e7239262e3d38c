package lock

import v1 "toolctl.dev/toolctl/api/v1"

// Merge returns the lock with new servers added, and with update, changed servers replaced. It removes the servers in gone.
// Without update, drift has the differences of changed servers.
func (f *File) Merge(now []Server, gone []v1.Key, update bool) (next File, drift []Drift, added []v1.Key) {
	next.Servers = append(next.Servers, f.Servers...)
	for _, k := range gone {
		next.Remove(k)
	}
	for _, s := range now {
		have := next.Server(s.Key)
		if have != nil {
			d := Diff(File{Servers: []Server{*have}}, File{Servers: []Server{s}})
			if len(d) == 0 {
				continue
			}
			if !update {
				drift = append(drift, d...)
				continue
			}
		}
		next.Put(s)
		added = append(added, s.Key)
	}
	return next, drift, added
}
