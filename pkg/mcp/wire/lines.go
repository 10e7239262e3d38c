package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Lines reads messages of a stream, one a line (MCP specification, transports, stdio).
type Lines struct {
	in  *bufio.Reader
	max int
}

// NewLines reads lines of at most max bytes.
func NewLines(in io.Reader, max int) *Lines { return &Lines{bufio.NewReaderSize(in, 64<<10), max} }

// ErrLong says that a line has more bytes than it may.
var ErrLong = errors.New("too long")

type longError int

func (e longError) Error() string        { return fmt.Sprintf("more than %d bytes", int(e)) }
func (e longError) Is(target error) bool { return target == ErrLong }

// Next returns the next line that is not empty, in room of its own. One that the end of the stream cut off
// comes with io.ErrUnexpectedEOF.
func (l *Lines) Next() ([]byte, error) {
	for {
		var line []byte
		for {
			part, err := l.in.ReadSlice('\n')
			if len(line)+len(part) > l.max {
				return nil, longError(l.max)
			}
			line = append(line, part...)
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if line = bytes.TrimSpace(line); len(line) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil || len(line) > 0 {
				return line, err
			}
			break
		}
	}
}

// LineWriter writes messages to a stream, one a line. It may be used by many goroutines at once.
type LineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// NewLineWriter returns a writer of messages.
func NewLineWriter(out io.Writer) *LineWriter { return &LineWriter{out: out} }

// Write writes a message. The line end goes into the room behind it, if there is any.
func (w *LineWriter) Write(message []byte) error {
	line := append(OneLine(message), '\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(line)
	return err
}

// OneLine returns a message without line ends, which may stand between its tokens.
func OneLine(message []byte) []byte {
	if bytes.IndexByte(message, '\n') < 0 && bytes.IndexByte(message, '\r') < 0 {
		return message
	}
	var line bytes.Buffer
	if json.Compact(&line, message) != nil {
		return message
	}
	return line.Bytes()
}
