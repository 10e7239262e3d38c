package source

// LimitPack bounds the files that git writes for r.
func LimitPack(r *Repository, bytes int64) { r.limits.FileBytes = bytes }
