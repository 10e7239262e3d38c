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

// Lines reads the messages of a stream, one on each line (MCP specification, transports, stdio).
type Lines struct {
	in  *bufio.Reader
	max int
}

// NewLines returns a reader of lines of at most max bytes.
func NewLines(in io.Reader, max int) *Lines { return &Lines{bufio.NewReaderSize(in, 64<<10), max} }

// LongError means that a message is longer than this number of bytes.
type LongError int

func (e LongError) Error() string {
	return fmt.Sprintf("a message of more than %d bytes", int(e))
}

// Next returns the next line that is not empty, in memory of its own. A line that the end of the stream cut off
// comes with io.ErrUnexpectedEOF.
func (l *Lines) Next() ([]byte, error) {
	for {
		var line []byte
		for {
			part, err := l.in.ReadSlice('\n')
			if len(line)+len(part) > l.max {
				return nil, LongError(l.max)
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

// LineWriter writes messages to a stream, one on each line. It is safe for concurrent use.
type LineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// NewLineWriter returns a writer to a stream.
func NewLineWriter(out io.Writer) *LineWriter { return &LineWriter{out: out} }

// Write writes a message. It may append the line end to the message in place.
func (w *LineWriter) Write(message []byte) error {
	line := append(OneLine(message), '\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(line)
	return err
}

// OneLine returns a message without the line ends that JSON allows between tokens.
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
