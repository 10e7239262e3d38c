package executors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// packed are the codings of bodies (RFC 9110, section 8.4.1) that are not asked for. Names beside these stand in
// the header by mistake, and say nothing.
var packed = []string{"br", "compress", "deflate", "gzip", "x-compress", "x-gzip", "zstd"}

// unpacked refuses a body that is still compressed: the transport asks for gzip, and took that away.
func unpacked(header http.Header, body []byte) error {
	coding := strings.ToLower(strings.TrimSpace(header.Get("Content-Encoding")))
	if len(body) > 0 && slices.ContainsFunc(strings.Split(coding, ","), func(c string) bool { return slices.Contains(packed, strings.TrimSpace(c)) }) {
		return fmt.Errorf("the response is compressed with %.40q (Content-Encoding), expected gzip or nothing, which is what was asked for", coding)
	}
	return nil
}

// inUTF8 returns a body whose Content-Type names an older character set in UTF-8. One that is UTF-8 in spite of that,
// as JSON mostly is, is left as it is.
func inUTF8(header http.Header, body []byte) []byte {
	named := header.Get("Content-Type")
	if !strings.Contains(named, "=") || len(body) == 0 {
		return body
	}
	_, params, _ := mime.ParseMediaType(named) // nothing of one that is not well formed
	switch charset := strings.ToLower(params["charset"]); charset {
	case "iso-8859-1", "latin1", "us-ascii", "ascii", "windows-1252", "cp1252": // all are the last, as for browsers
		if !utf8.Valid(body) {
			return fromWindows1252(body)
		}
	case "utf-16", "utf-16le", "utf-16be":
		if len(body)%2 == 0 && (!utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0) {
			return fromUTF16(body, charset == "utf-16be" || charset == "utf-16" && body[0] == 0)
		}
	}
	return body
}

// windows1252 is what its bytes from 0x80 to 0x9f are; all others are the characters of their numbers.
const windows1252 = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"

func fromWindows1252(body []byte) []byte {
	special := []rune(windows1252)
	out := make([]byte, 0, len(body)+len(body)/8)
	for _, b := range body {
		r := rune(b)
		if b >= 0x80 && b <= 0x9f {
			r = special[b-0x80]
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// fromUTF16 obeys a byte order mark before what it is told.
func fromUTF16(body []byte, bigEndian bool) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	switch mark := binary.BigEndian.Uint16(body); {
	case mark == 0xfeff, mark != 0xfffe && bigEndian:
		order = binary.BigEndian
	}
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); i += 2 {
		r := rune(order.Uint16(body[i:]))
		if utf16.IsSurrogate(r) { // one of two; one alone becomes U+FFFD
			if second := i + 2; second < len(body) && utf16.DecodeRune(r, rune(order.Uint16(body[second:]))) != utf8.RuneError {
				r = utf16.DecodeRune(r, rune(order.Uint16(body[second:])))
				i = second
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return bytes.TrimPrefix(out, []byte("\ufeff"))
}
