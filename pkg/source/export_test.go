package source

// LimitPack limits the size of files that git writes for r.
func LimitPack(r *Repository, bytes int64) { r.limits.FileBytes = bytes }
