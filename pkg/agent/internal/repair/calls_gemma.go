package repair

import (
	"encoding/json"
	"strings"

	"toolctl.dev/toolctl/internal/jsontext"
)

// gemmaQuotes are written in place of quotes. The text between them is not escaped.
var gemmaQuotes = []string{`<|"|>`, "<escape>"}

// gemma reads calls in the form of Gemma: call:NAME{key:<|"|>text<|"|>,days:3}.
func gemma(body string, _ bool) []Call {
	const word = "call:"
	var calls []Call
	for len(calls) < maxCalls {
		i := strings.Index(body, word)
		if i < 0 {
			break
		}
		brace := strings.IndexByte(body[i:], '{')
		if brace < 0 {
			break
		}
		name := strings.TrimSpace(body[i+len(word) : i+brace])
		args, n := gemmaObject(body[i+brace:])
		if name == "" || strings.ContainsAny(name, " \n<>") {
			return nil
		}
		calls = append(calls, Call{Name: name, Args: args})
		body = body[i+brace+n:]
	}
	return calls
}

// gemmaObject returns the object at the start of a text as JSON, and its length. It does not close an object without
// an end, because [Object] decides about that.
func gemmaObject(text string) (object string, n int) {
	var out strings.Builder
	depth := 0
	for i := 0; i < len(text); {
		if quote := gemmaQuote(text[i:]); quote != "" {
			content := text[i+len(quote):]
			end := strings.Index(content, quote)
			if end < 0 {
				quoted := string(jsontext.Of(content))
				out.WriteString(quoted[:len(quoted)-1])
				return out.String(), len(text)
			}
			out.Write(jsontext.Of(content[:end]))
			i += end + 2*len(quote)
			continue
		}
		switch c := text[i]; c {
		case '"':
			end := jsontext.SkipString(text, i)
			out.WriteString(text[i:end])
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
		default:
			n := strings.IndexAny(text[i:], "{}[],:\"<")
			if n <= 0 {
				n = len(text) - i
				if c == '<' {
					n = 1
				}
			}
			word := strings.TrimSpace(text[i : i+n])
			key := i+n < len(text) && text[i+n] == ':'
			if key || !json.Valid([]byte(word)) {
				out.Write(jsontext.Of(word))
			} else {
				out.WriteString(word)
			}
			i += n
			continue
		}
		out.WriteByte(text[i])
		if i++; depth <= 0 {
			return out.String(), i
		}
	}
	return out.String(), len(text)
}

func gemmaQuote(text string) string {
	for _, q := range gemmaQuotes {
		if strings.HasPrefix(text, q) {
			return q
		}
	}
	return ""
}
