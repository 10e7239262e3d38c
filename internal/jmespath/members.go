package jmespath

import (
	"reflect"
	"slices"

	"github.com/jmespath/go-jmespath"
)

// Members returns the distinct members of the document that an expression reads. bare are the members that it
// passes on unchanged: if the document lacks such a member, the result contains null.
func (e *Expression) Members() (read, bare []string) {
	// The library does not export its syntax tree: TestMembers fails if a new version changes it.
	var walk func(node reflect.Value, plain bool) (whole bool)
	walk = func(node reflect.Value, plain bool) (whole bool) {
		children := node.FieldByName("children")
		switch node.FieldByName("nodeType").Int() {
		case int64(jmespath.ASTField):
			name := node.FieldByName("value").Elem().String()
			if !slices.Contains(read, name) {
				read = append(read, name)
			}
			if plain && !slices.Contains(bare, name) {
				bare = append(bare, name)
			}
		case int64(jmespath.ASTCurrentNode), int64(jmespath.ASTIdentity):
			return true
		case int64(jmespath.ASTExpRef): // it applies to the elements that a function passes
		case int64(jmespath.ASTSubexpression), int64(jmespath.ASTPipe), int64(jmespath.ASTIndexExpression):
			return walk(children.Index(0), plain) && walk(children.Index(1), plain) // the right side applies to the result of the left side
		case int64(jmespath.ASTProjection), int64(jmespath.ASTFilterProjection), int64(jmespath.ASTValueProjection), int64(jmespath.ASTFlatten), int64(jmespath.ASTSlice):
			if children.Len() > 0 {
				walk(children.Index(0), plain)
			}
		case int64(jmespath.ASTMultiSelectHash), int64(jmespath.ASTMultiSelectList), int64(jmespath.ASTKeyValPair):
			for i := range children.Len() {
				walk(children.Index(i), plain)
			}
		default:
			for i := range children.Len() {
				walk(children.Index(i), false)
			}
		}
		return false
	}
	walk(reflect.ValueOf(e.path).Elem().FieldByName("ast"), true)
	return read, bare
}
