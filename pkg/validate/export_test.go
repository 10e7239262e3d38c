package validate

// EngineFailed is the start of errors about a panic of an engine.
const EngineFailed = engineFailed

// Forget empties a cache, so that a benchmark compiles anew.
func Forget(c *Cache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.schemas)
}

// Schemas returns the number of entries of a cache.
func Schemas(c *Cache) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.schemas)
}

// EngineOf returns "gojsonschema" or "santhosh" for a compiled schema.
func EngineOf(s *Schema) string {
	e, _ := s.running()
	switch e.(type) {
	case *gojson:
		return "gojsonschema"
	case *santhosh:
		return "santhosh"
	}
	return "none"
}
