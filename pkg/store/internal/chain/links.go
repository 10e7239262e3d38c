package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Links is a digest of what is left of an audit from whose middle lines were pruned. Of lines that went before a
// line that stays, the last is left as a row with another text, a link: its hash is what the next line goes on from.
// Links are not chained to what is before them, so the line on the prune has this digest of the numbers and
// hashes of all rows up to the last link. The zero value has no rows.
type Links struct {
	sum    hash.Hash
	digest string
	count  int64
}

// LinkText is the text of a link; that of a line is a JSON object.
const LinkText = "pruned"

// IsLink reports whether a row is a link.
func (r *Row) IsLink() bool { return string(r.Text) == LinkText }

// Add takes the next row.
func (l *Links) Add(id int64, hash []byte, link bool) {
	if l.sum == nil {
		l.sum = sha256.New()
	}
	l.sum.Write(binary.BigEndian.AppendUint64(nil, uint64(id)))
	l.sum.Write(hash)
	if !link {
		l.sum.Write([]byte{0})
	} else {
		l.sum.Write([]byte{1})
		l.count++
		l.digest = hex.EncodeToString(l.sum.Sum(nil))
	}
}

// Count is how many links there are.
func (l *Links) Count() int64 { return l.count }

// Digest is the digest of the links in hexadecimal; empty without links.
func (l *Links) Digest() string { return l.digest }
