package jmespath

import (
	"reflect"
	"slices"

	"github.com/jmespath/go-jmespath"
)

// Members returns the members of the document that an expression reads, each once. Bare are those that it passes on as they
// are: where the document lacks one, there is null.
func (e *Expression) Members() (read, bare []string) {
	// The library shows its tree to nobody: TestMembers says when that of another version differs.
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
		case int64(jmespath.ASTExpRef): // is about what a function applies it to
		case int64(jmespath.ASTSubexpression), int64(jmespath.ASTPipe), int64(jmespath.ASTIndexExpression):
			return walk(children.Index(0), plain) && walk(children.Index(1), plain) // the right is about what the left found
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
