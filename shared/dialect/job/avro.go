package job

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"gateway/shared/egress"
	"gateway/shared/wire"
)

// Bounds of Avro files.
const (
	maxAvroBlock = 16 << 20 // bytes of a block; writers make them of some 64 KB
	maxAvroPlain = 32 << 20 // bytes of a block when it is inflated
	maxAvroDepth = 32       // of types in types
)

var errAvro = errors.New("job: no Avro file that can be read")

// avroType is a type of a schema.
type avroType struct {
	kind    string // record, array, union, string ...
	names   []string
	members []*avroType // of a record by name, of a union by index; or of the items of an array or map
	size    int64       // of fixed
}

// avroSchema reads schemas. A named type may be referred to after its definition.
type avroSchema struct{ named map[string]*avroType }

func (s *avroSchema) read(raw []byte, depth int) (*avroType, error) {
	if depth > maxAvroDepth {
		return nil, errAvro
	}
	switch wire.KindOf(raw) {
	case wire.KindString:
		var name string
		if json.Unmarshal(raw, &name) != nil {
			return nil, errAvro
		}
		if t := s.named[name]; t != nil {
			return t, nil
		}
		switch name {
		case "null", "boolean", "int", "long", "float", "double", "bytes", "string":
			return &avroType{kind: name}, nil
		}
	case wire.KindArray:
		var options []json.RawMessage
		if json.Unmarshal(raw, &options) != nil {
			return nil, errAvro
		}
		t := &avroType{kind: "union"}
		for _, o := range options {
			m, err := s.read(o, depth+1)
			if err != nil {
				return nil, err
			}
			t.members = append(t.members, m)
		}
		return t, nil
	case wire.KindObject:
		return s.readObject(raw, depth)
	}
	return nil, errAvro
}

func (s *avroSchema) readObject(raw []byte, depth int) (*avroType, error) {
	var o struct {
		Type   json.RawMessage `json:"type"`
		Name   string          `json:"name"`
		Space  string          `json:"namespace"`
		Items  json.RawMessage `json:"items"`
		Values json.RawMessage `json:"values"`
		Words  []string        `json:"symbols"`
		Size   int64           `json:"size"`
		Fields []struct {
			Name string          `json:"name"`
			Type json.RawMessage `json:"type"`
		} `json:"fields"`
	}
	var kind string
	if json.Unmarshal(raw, &o) != nil {
		return nil, errAvro
	}
	if json.Unmarshal(o.Type, &kind) != nil {
		return s.read(o.Type, depth+1)
	}
	t := &avroType{kind: kind}
	if o.Name != "" {
		s.named[o.Name] = t
		if o.Space != "" {
			s.named[o.Space+"."+o.Name] = t
		}
	}
	inner := func(raw json.RawMessage) error {
		m, err := s.read(raw, depth+1)
		t.members = append(t.members, m)
		return err
	}
	switch kind {
	case "record", "error":
		for _, f := range o.Fields {
			t.names = append(t.names, f.Name)
			if err := inner(f.Type); err != nil {
				return nil, err
			}
		}
		return t, nil
	case "array":
		return t, inner(o.Items)
	case "map":
		return t, inner(o.Values)
	case "enum":
		t.names = o.Words
		return t, nil
	case "fixed":
		if t.size = o.Size; o.Size < 0 || o.Size > maxAvroBlock {
			return nil, errAvro
		}
		return t, nil
	}
	return s.read(o.Type, depth+1) // a plain type with properties
}

// avroLines returns the records of an Avro object container as lines of JSON. It closes
// from.
type avroLines struct {
	from      io.Closer
	src       *bufio.Reader
	schema    *avroType
	codec     string
	sync      [16]byte
	block     []byte // remainder of the block
	left      int64  // records in it
	out       []byte
	at        int
	bytesRead int64 // bytes of blocks that were read
	made      int64 // bytes of rows that were made
	err       error
}

func newAvroLines(from io.ReadCloser) io.ReadCloser {
	return &avroLines{from: from, src: bufio.NewReaderSize(from, 64<<10)}
}

// Close implements io.Closer.
func (a *avroLines) Close() error { return a.from.Close() }

// Read implements io.Reader.
func (a *avroLines) Read(p []byte) (int, error) {
	for a.at == len(a.out) {
		if a.err != nil {
			return 0, a.err
		}
		a.out, a.at = a.out[:0], 0
		if a.err = a.next(); a.err != nil {
			a.out = a.out[:0]
		}
	}
	n := copy(p, a.out[a.at:])
	a.at += n
	return n, nil
}

// next writes the next record.
func (a *avroLines) next() error {
	if a.schema == nil {
		if err := a.head(); err != nil {
			return err
		}
	}
	for a.left == 0 {
		if err := a.nextBlock(); err != nil {
			return err
		}
	}
	a.left--
	r := avroReader{b: a.block}
	if a.out = r.value(a.out, a.schema, 0); r.bad || len(a.out) > maxRow {
		return errAvro
	}
	a.block = r.b
	a.out = append(a.out, '\n')
	// An item of no bytes becomes a word in JSON, so rows can outgrow the input.
	if a.made += int64(len(a.out)); egress.ExceedsRatio(a.bytesRead, a.made) {
		return errAvro
	}
	return nil
}

// head reads the schema, the codec and the mark between blocks.
func (a *avroLines) head() error {
	var magic [4]byte
	if _, err := io.ReadFull(a.src, magic[:]); err != nil || string(magic[:]) != "Obj\x01" {
		return errAvro
	}
	for {
		n, err := binary.ReadVarint(a.src)
		if err != nil {
			return errAvro
		}
		if n == 0 {
			break
		}
		if n < 0 {
			n = -n
			if _, err := binary.ReadVarint(a.src); err != nil {
				return errAvro
			}
		}
		for ; n > 0; n-- {
			key, err := a.bytes(1 << 10)
			if err != nil {
				return err
			}
			value, err := a.bytes(1 << 20)
			if err != nil {
				return err
			}
			switch string(key) {
			case "avro.schema":
				s := avroSchema{named: map[string]*avroType{}}
				if a.schema, err = s.read(bytes.TrimSpace(value), 0); err != nil {
					return err
				}
			case "avro.codec":
				a.codec = string(value)
			}
		}
	}
	if _, err := io.ReadFull(a.src, a.sync[:]); err != nil || a.schema == nil {
		return errAvro
	}
	return nil
}

// bytes reads a text with its length before it.
func (a *avroLines) bytes(most int64) ([]byte, error) {
	n, err := binary.ReadVarint(a.src)
	if err != nil || n < 0 || n > most {
		return nil, errAvro
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(a.src, b); err != nil {
		return nil, errAvro
	}
	return b, nil
}

// packed reads a block as it comes, so that a false length alone costs nothing.
func (a *avroLines) packed() ([]byte, error) {
	n, err := binary.ReadVarint(a.src)
	if err != nil || n < 0 || n > maxAvroBlock {
		return nil, errAvro
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, a.src, n); err != nil {
		return nil, errAvro
	}
	a.bytesRead += n
	return b.Bytes(), nil
}

func (a *avroLines) nextBlock() error {
	if _, err := a.src.Peek(1); err == io.EOF {
		return io.EOF
	}
	n, err := binary.ReadVarint(a.src)
	if err != nil || n < 0 {
		return errAvro
	}
	if a.block, err = a.packed(); err != nil {
		return err
	}
	var sync [16]byte
	if _, err := io.ReadFull(a.src, sync[:]); err != nil || sync != a.sync {
		return errAvro
	}
	switch a.codec {
	case "", "null":
	case "deflate":
		if a.block, err = egress.InflateRaw(a.block, maxAvroPlain); err != nil {
			return errAvro
		}
	default:
		return errAvro
	}
	// Rows of no bytes would never end.
	if a.left = n; n > int64(len(a.block)) {
		return errAvro
	}
	return nil
}
