package schemagen

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// source holds the information about manifests from the Go source.
type source struct {
	// types holds the structs by Go name.
	types map[string]*structType
	// doc is the comment of the package.
	doc string
}

// structType is a Go struct that describes an object in manifests.
type structType struct {
	name string
	// doc is the unchanged comment.
	doc string
	// fields holds the fields in source order, with the fields of embedded structs in place.
	fields []*field
	pos    token.Position
}

// field is one field of an object.
type field struct {
	// owner is the name of the struct that declares the field.
	owner, goName, name string
	typ                 valueType
	// doc is the unchanged comment, and comment its parts.
	doc string
	comment
	// The rules of the check tag.
	mustHave bool
	min, max *float64
	oneof    []string
	single   bool   // a single value may stand for a list
	pattern  string // pattern of the text, or of each text in a list
	pos      token.Position
}

// The kinds of a [valueType].
const (
	kindString  = "string"
	kindInteger = "integer"
	kindNumber  = "number"
	kindBoolean = "boolean"
	kindAny     = "any"
	kindSchema  = "JSONSchema"
	kindArray   = "array"
	kindMap     = "map"
	kindObject  = "object"
)

// valueType is the type of a field.
type valueType struct {
	kind string
	// elem is the type of an array's items or a map's values.
	elem *valueType
	// object is the struct's name, of kind object.
	object string
}

// String returns the type as shown by explain and the reference, for example "[]Limit".
func (t valueType) String() string {
	switch t.kind {
	case kindArray:
		return "[]" + t.elem.String()
	case kindMap:
		return "map[string]" + t.elem.String()
	case kindObject:
		return t.object
	}
	return t.kind
}

// reader converts declarations to a source and collects errors.
type reader struct {
	fset  *token.FileSet
	decls map[string]*ast.TypeSpec
	docs  map[string]string
	out   *source
	errs  []error
}

// readSource reads the structs that the kinds of api/v1 use.
func readSource(dir string) (*source, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no Go files: run go generate ./schemas", dir)
	}
	sort.Strings(paths)
	r := &reader{fset: token.NewFileSet(), decls: map[string]*ast.TypeSpec{}, docs: map[string]string{},
		out: &source{types: map[string]*structType{}}}
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(r.fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		r.out.doc += f.Doc.Text()
		r.collect(f)
	}
	for _, kind := range v1.Kinds() {
		r.object(kind)
	}
	return r.out, errors.Join(r.errs...)
}

func (r *reader) collect(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, s := range g.Specs {
			t := s.(*ast.TypeSpec)
			doc := t.Doc
			if doc == nil && len(g.Specs) == 1 {
				doc = g.Doc
			}
			r.decls[t.Name.Name], r.docs[t.Name.Name] = t, doc.Text()
		}
	}
}

func (r *reader) errorf(n ast.Node, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s: %s", r.fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
}

// object reads the named struct and all structs that it uses.
func (r *reader) object(name string) {
	if r.out.types[name] != nil {
		return
	}
	decl := r.decls[name]
	if decl == nil {
		r.errs = append(r.errs, fmt.Errorf("api/v1: type %s is not declared", name))
		return
	}
	st, ok := decl.Type.(*ast.StructType)
	if !ok {
		r.errorf(decl, "type %s is not a struct", name)
		return
	}
	t := &structType{name: name, doc: r.docs[name], pos: r.fset.Position(decl.Pos())}
	r.out.types[name] = t // set first, so that a type may contain itself
	t.fields = r.fields(name, st)
}

func (r *reader) fields(owner string, st *ast.StructType) []*field {
	var out []*field
	for _, f := range st.Fields.List {
		var tag reflect.StructTag
		if f.Tag != nil {
			s, _ := strconv.Unquote(f.Tag.Value) // the parser has checked the string literal
			tag = reflect.StructTag(s)
		}
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if len(f.Names) == 0 {
			out = append(out, r.embedded(f)...)
			continue
		}
		for _, id := range f.Names {
			if !id.IsExported() {
				continue
			}
			if name == "" {
				r.errorf(f, "%s.%s has no json name", owner, id.Name)
				continue
			}
			nf := &field{owner: owner, goName: id.Name, name: name, doc: f.Doc.Text(), pos: r.fset.Position(id.Pos())}
			nf.comment = parseComment(nf.goName, nf.name, nf.doc)
			nf.typ = r.typeOf(f.Type, nf.doc)
			r.rules(f, nf, tag.Get("check"))
			out = append(out, nf)
		}
	}
	return out
}

func (r *reader) embedded(f *ast.Field) []*field {
	id, ok := f.Type.(*ast.Ident)
	if !ok || r.decls[id.Name] == nil {
		r.errorf(f, "an embedded field must be a struct of this package")
		return nil
	}
	st, ok := r.decls[id.Name].Type.(*ast.StructType)
	if !ok {
		r.errorf(f, "embedded %s is not a struct", id.Name)
		return nil
	}
	return r.fields(id.Name, st)
}

func (r *reader) typeOf(e ast.Expr, doc string) valueType {
	switch e := e.(type) {
	case *ast.StarExpr:
		return r.typeOf(e.X, doc)
	case *ast.ArrayType:
		elem := r.typeOf(e.Elt, doc)
		return valueType{kind: kindArray, elem: &elem}
	case *ast.MapType:
		if k, ok := e.Key.(*ast.Ident); !ok || k.Name != "string" {
			r.errorf(e, "the key of a map must be string")
		}
		elem := r.typeOf(e.Value, doc)
		return valueType{kind: kindMap, elem: &elem}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "json" && e.Sel.Name == "RawMessage" {
			if strings.Contains(doc, "JSON Schema") {
				return valueType{kind: kindSchema}
			}
			return valueType{kind: kindAny}
		}
	case *ast.Ident:
		switch e.Name {
		case "string":
			return valueType{kind: kindString}
		case "bool":
			return valueType{kind: kindBoolean}
		case "int", "int32", "int64":
			return valueType{kind: kindInteger}
		case "float64":
			return valueType{kind: kindNumber}
		case "any":
			return valueType{kind: kindAny}
		}
		if d := r.decls[e.Name]; d != nil {
			if _, ok := d.Type.(*ast.StructType); !ok {
				return r.typeOf(d.Type, doc)
			}
			r.object(e.Name)
			return valueType{kind: kindObject, object: e.Name}
		}
	}
	r.errorf(e, "no JSON Schema is known for this Go type: add it to internal/schemagen/source.go")
	return valueType{kind: kindAny}
}

// rules reads the check tag, which is described in the package comment of api/v1.
func (r *reader) rules(at ast.Node, f *field, tag string) {
	if tag == "" {
		return
	}
	for rule := range strings.SplitSeq(tag, ",") {
		key, val, _ := strings.Cut(rule, "=")
		switch key {
		case "required":
			f.mustHave = true
		case "oneof":
			switch f.oneof = strings.Split(val, "|"); val {
			case "@assertions":
				f.oneof = v1.AssertionNames()
			case "@modes":
				f.oneof = v1.Modes()
			}
		case "path", "null", "env":
		case "pattern", "url":
			f.pattern = map[string]string{"pattern": pattern, "url": httpURL}[key]
		case "single":
			f.single = true
		case "min", "max":
			n, err := strconv.ParseFloat(val, 64)
			if err != nil || f.typ.kind != kindInteger && f.typ.kind != kindNumber {
				r.errorf(at, "check rule %q does not fit a field of type %s", rule, f.typ)
			}
			if key == "min" {
				f.min = &n
			} else {
				f.max = &n
			}
		default:
			r.errorf(at, "unknown check rule %q: add it to internal/schemagen/source.go", rule)
		}
	}
}
