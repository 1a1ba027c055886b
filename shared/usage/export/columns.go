package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"gateway/shared/pricing"
)

// Compression codecs of Parquet pages, besides Gzip.
const (
	Snappy = "snappy"
	Zstd   = "zstd"
)

var codecs = map[string]compress.Codec{Gzip: &parquet.Gzip, Snappy: &parquet.Snappy, Zstd: &parquet.Zstd}

// columns writes Parquet. Each part consists of complete row groups, and their metadata
// for the footer is the part's index; the last part ends with the footer of the file.
type columns struct {
	fields   []*field
	optional []bool
	file     *parquet.GenericWriter[any]
	buf      bytes.Buffer // the part
	written  int64        // size of the file before the part
	indexes  func(context.Context) ([]format.RowGroup, error)
	row      parquet.Row
	buffered int // size of the buffered values of the unfinished row group
	most     int // its maximum
}

// maxGroups limits the footer.
const maxGroups = 4000

// magic is the first and last bytes of Parquet files.
const magic = "PAR1"

// pageBytes is the approximate size of a column's page. Every column buffers one.
const pageBytes = 128 << 10

// newColumns continues a file with written bytes. indexes returns those of its parts, in
// order. most is the approximate size of a row group in memory, in bytes.
func newColumns(o *Order, written int64, most int, indexes func(context.Context) ([]format.RowGroup, error)) *columns {
	w := &columns{fields: named(o.Fields), written: written, most: most, indexes: indexes}
	options := []parquet.WriterOption{parquet.PageBufferSize(pageBytes), parquet.WriteBufferSize(0)}
	schema := ordered{Group: parquet.Group{}}
	for _, f := range w.fields {
		node, optional := f.kind.column()
		if codec, packed := codecs[o.Codec]; packed {
			node = parquet.Compressed(node, codec)
		}
		if optional {
			node = parquet.Optional(node)
			options = append(options, parquet.SkipPageBounds(f.name)) // bodies are too large for a footer
		}
		schema.Group[f.name] = node
		schema.names, w.optional = append(schema.names, f.name), append(w.optional, optional)
	}
	w.file = parquet.NewGenericWriter[any](&w.buf, append(options, parquet.NewSchema("log", schema))...)
	return w
}

// ordered is a group with fields in the given order.
type ordered struct {
	parquet.Group
	names []string
}

// Fields implements parquet.Node.
func (o ordered) Fields() []parquet.Field {
	fields := slices.Clone(o.Group.Fields())
	slices.SortFunc(fields, func(x, y parquet.Field) int {
		return slices.Index(o.names, x.Name()) - slices.Index(o.names, y.Name())
	})
	return fields
}

// column returns the Parquet type of a kind, and whether values may be missing.
func (k kind) column() (node parquet.Node, optional bool) {
	switch k {
	case flag:
		return parquet.Leaf(parquet.BooleanType), false
	case whole:
		return parquet.Int(64), false
	case number:
		return parquet.Leaf(parquet.DoubleType), false
	case money:
		return parquet.Decimal(9, 18, parquet.Int64Type), false
	case instant:
		return parquet.Timestamp(parquet.Microsecond), false
	case choice:
		return parquet.Encoded(parquet.String(), &parquet.RLEDictionary), true
	}
	return parquet.Encoded(parquet.String(), &parquet.Plain), true
}

// cell converts a value and returns its approximate size in memory.
func cell(v any) (parquet.Value, int) {
	var text []byte
	switch v := v.(type) {
	case nil:
		return parquet.NullValue(), 1
	case bool:
		return parquet.BooleanValue(v), 1
	case int64:
		return parquet.Int64Value(v), 8
	case float64:
		return parquet.DoubleValue(v), 8
	case pricing.NanoDollars:
		return parquet.Int64Value(int64(v)), 8
	case time.Time:
		return parquet.Int64Value(v.UnixMicro()), 8
	case json.RawMessage:
		text = bytes.ToValidUTF8(v, []byte("\uFFFD"))
	case string:
		text = []byte(strings.ToValidUTF8(v, "\uFFFD"))
	}
	return parquet.ByteArrayValue(text), len(text) + 4
}

func (w *columns) record(l *line) error {
	w.row = w.row[:0]
	for i, f := range w.fields {
		v, size := cell(f.value(l))
		level := 0
		if w.optional[i] && !v.IsNull() {
			level = 1
		}
		w.row, w.buffered = append(w.row, v.Level(0, level, i)), w.buffered+size
	}
	if _, err := w.file.WriteRows([]parquet.Row{w.row}); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if w.buffered < w.most {
		return nil
	}
	w.buffered = 0
	return w.file.Flush()
}

func (w *columns) size() int { return w.buf.Len() }

func (w *columns) part(ctx context.Context, last bool) (body, index []byte, err error) {
	if err := w.file.Flush(); err != nil {
		return nil, nil, fmt.Errorf("export: %w", err)
	}
	size := w.buf.Len()
	if err := w.file.Close(); err != nil {
		return nil, nil, fmt.Errorf("export: %w", err)
	}
	about := *w.file.File().Metadata()
	if size == 0 { // no row group: the library started with its footer
		size = len(magic)
	}
	w.buf.Truncate(size)
	body = w.buf.Bytes()
	if w.written > 0 { // the magic is only at the start of the file
		body = body[len(magic):]
	}
	about.RowGroups = moved(about.RowGroups, w.written-int64(size-len(body)))
	if w.written += int64(len(body)); !last {
		index, err = thrift.Marshal(new(thrift.CompactProtocol), &about)
		return body, index, err
	}
	before, err := w.indexes(ctx)
	if err != nil {
		return nil, nil, err
	}
	about.RowGroups = append(before, about.RowGroups...)
	end, err := footer(&about)
	return append(body, end...), nil, err
}

// moved returns row groups for the footer: shifted to the offset of their part in the
// file, and without page indexes.
func moved(groups []format.RowGroup, by int64) []format.RowGroup {
	out := slices.Clone(groups)
	for i := range out {
		g := &out[i]
		g.FileOffset += by
		g.Columns = slices.Clone(g.Columns)
		for j := range g.Columns {
			c := &g.Columns[j]
			c.ColumnIndexOffset, c.ColumnIndexLength, c.OffsetIndexOffset, c.OffsetIndexLength = 0, 0, 0, 0
			if c.MetaData.DataPageOffset += by; c.MetaData.DictionaryPageOffset > 0 {
				c.MetaData.DictionaryPageOffset += by
			}
		}
	}
	return out
}

// footer returns the end of a file.
func footer(about *format.FileMetaData) ([]byte, error) {
	if len(about.RowGroups) > maxGroups {
		return nil, errTooLarge
	}
	about.NumRows = 0
	for i := range about.RowGroups {
		about.RowGroups[i].Ordinal = int16(i)
		about.NumRows += about.RowGroups[i].NumRows
	}
	b, err := thrift.Marshal(new(thrift.CompactProtocol), about)
	if err != nil {
		return nil, fmt.Errorf("export: footer: %w", err)
	}
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(b))), magic...), nil
}

func (w *columns) next() {
	w.buffered = 0
	w.buf.Reset()
	w.file.Reset(&w.buf)
}

// indexKey returns the key of a part's index. If another process replaces the part, that
// part has another tag and so another index.
func (r *Run) indexKey(part int) string {
	sum := sha256.Sum256([]byte(r.Tags[part]))
	return fmt.Sprintf("%s.parts/%05d-%x", r.Key, part, sum[:8])
}

// maxIndex limits the index of a part.
const maxIndex = 8 << 20

// indexes reads the indexes of the run's parts.
func (t *task) indexes(ctx context.Context) (groups []format.RowGroup, err error) {
	for i := range t.run.Tags {
		b, err := t.Bucket.Get(ctx, t.run.indexKey(i), maxIndex)
		if err != nil {
			return nil, fmt.Errorf("export: index of part %d: %w", i, err)
		}
		var about format.FileMetaData
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), b, &about); err != nil {
			return nil, fmt.Errorf("export: index of part %d: %w", i, err)
		}
		if groups = append(groups, about.RowGroups...); len(groups) > maxGroups {
			return nil, errTooLarge
		}
	}
	return groups, nil
}

// dropIndexes deletes the indexes. Remaining ones are deleted with the files of their
// day.
func (t *task) dropIndexes(ctx context.Context) {
	if t.run.Order.Format != Parquet {
		return
	}
	for i := range t.run.Tags {
		if err := t.Bucket.Delete(ctx, t.run.indexKey(i)); err != nil {
			t.failed(fmt.Errorf("export: an index was not deleted: %w", err))
			return
		}
	}
}
