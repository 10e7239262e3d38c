package executors

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// packed are the content codings (RFC 9110, section 8.4.1) that mean compression. Other names in the header
// are mistakes and are ignored.
var packed = []string{"br", "compress", "deflate", "gzip", "x-compress", "x-gzip", "zstd"}

// unpacked refuses a body that is still compressed: the transport has already decompressed gzip.
func unpacked(header http.Header, body []byte) error {
	coding := strings.ToLower(strings.TrimSpace(header.Get("Content-Encoding")))
	if len(body) > 0 && slices.ContainsFunc(strings.Split(coding, ","), func(c string) bool { return slices.Contains(packed, strings.TrimSpace(c)) }) {
		return fmt.Errorf("the response is compressed with %.40q (Content-Encoding): expected gzip or no compression", coding)
	}
	return nil
}

// inUTF8 converts a body to UTF-8 if its Content-Type names an older character set. A body that is valid UTF-8
// anyway, as JSON mostly is, stays unchanged.
func inUTF8(header http.Header, body []byte) []byte {
	named := header.Get("Content-Type")
	if !strings.Contains(named, "=") || len(body) == 0 {
		return body
	}
	_, params, _ := mime.ParseMediaType(named) // without parameters if it is malformed
	var from encoding.Encoding
	switch charset := strings.ToLower(params["charset"]); charset {
	case "iso-8859-1", "latin1", "us-ascii", "ascii", "windows-1252", "cp1252": // browsers read them all as windows-1252
		if !utf8.Valid(body) {
			from = charmap.Windows1252
		}
	case "utf-16", "utf-16le", "utf-16be":
		if len(body)%2 == 0 && (!utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0) {
			order := unicode.LittleEndian
			if charset == "utf-16be" || charset == "utf-16" && body[0] == 0 {
				order = unicode.BigEndian
			}
			from = unicode.UTF16(order, unicode.UseBOM)
		}
	}
	if from == nil {
		return body
	}
	text, err := from.NewDecoder().Bytes(body)
	if err != nil {
		return body
	}
	return text
}
