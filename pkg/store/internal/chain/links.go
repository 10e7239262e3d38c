package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Links is a digest of the remaining rows of an audit log from whose middle records were pruned. The last pruned record
// before a remaining one stays as a row with another text, a link, because the next record needs its hash. Links are
// not chained to the rows before them, so the record of the prune contains this digest of the numbers and hashes of all
// rows up to the last link. The zero value has no rows.
type Links struct {
	sum    hash.Hash
	digest string
	count  int64
}

// LinkText is the text of a link; the text of a record is a JSON object.
const LinkText = "pruned"

// IsLink reports whether a row is a link.
func (r *Row) IsLink() bool { return string(r.Text) == LinkText }

// Add adds the next row.
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

// Count returns the number of links.
func (l *Links) Count() int64 { return l.count }

// Digest returns the digest of the links in hexadecimal; it is empty without links.
func (l *Links) Digest() string { return l.digest }
