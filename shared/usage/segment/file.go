package segment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"

	"gateway/shared/usage"
)

// File is an open Parquet file of a segment. Columns with few values are decoded once and
// cached by the archive. A File belongs to one caller; it holds the bytes of a small file
// in memory.
type File struct {
	*outline

	a     *Archive
	cache *cache // the archive's, or nil
	m     Manifest
	whole []byte // the file, if it was read completely
}

// outline is the metadata at the end of a file; all readers of the file share it.
type outline struct {
	Groups  []Group
	pf      *parquet.File
	columns map[string]int // leaf index by dotted path
}

// Group is a row group, which is read or skipped completely. Rows are ordered by Start,
// then by id.
type Group struct {
	Rows        int
	First, Last int64 // Start of its first and last record
}

// wholeFile is the size up to which a file in the bucket is read completely.
const wholeFile = 512 << 10

// File opens a segment's file.
func (a *Archive) File(ctx context.Context, m *Manifest) (*File, error) {
	return a.open(ctx, m, a.cache)
}

// columnWeight estimates the memory for the metadata of one column of one group.
const columnWeight = 2 << 10

// tail is the number of bytes read from the end of a large file to open it.
const tail = 128 << 10

// small reports whether the file is read completely.
func (m *Manifest) small() bool { return !m.inBucket(dataObject) || m.Size <= wholeFile }

// OpenWeight estimates the memory in bytes for opening the segment's file.
func (m *Manifest) OpenWeight() int64 {
	outline := columnWeight * numColumns * (m.Records/groupRows + 1)
	if m.small() {
		return 2*m.Size + outline // the stored bytes, and a copy
	}
	return tail + outline
}

// open opens a segment's file; c caches decoded columns.
func (a *Archive) open(ctx context.Context, m *Manifest, c *cache) (*File, error) {
	f := &File{a: a, cache: c, m: *m}
	key := m.Name + "/file"
	if v, ok := c.get(key); ok {
		f.outline = v.(*outline)
		return f, nil
	}
	r := new(detached)
	if m.small() {
		b, err := f.bytes(ctx)
		if err != nil {
			return nil, err
		}
		r.ReaderAt = &extent{b: b}
	} else {
		b, err := a.objects.part(ctx, m.blobKey(dataObject), m.Size-tail, tail)
		if err != nil {
			return nil, err
		}
		r.ReaderAt = &remote{f: f, ctx: ctx, near: extent{b: b, base: m.Size - tail}}
	}
	pf, err := parquet.OpenFile(r, m.Size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	r.ReaderAt = nil
	if err != nil {
		return nil, fmt.Errorf("segment: file of %s: %w", m.Name, err)
	}
	f.outline = &outline{pf: pf, columns: make(map[string]int)}
	for i, path := range pf.Schema().Columns() {
		f.columns[strings.Join(path, ".")] = i
	}
	for _, g := range pf.RowGroups() {
		chunk, err := f.chunk(len(f.Groups), intColumns[Start])
		if err != nil {
			return nil, err
		}
		first, last, ok := chunk.Bounds()
		if !ok {
			return nil, fmt.Errorf("segment: file of %s: no bounds", m.Name)
		}
		f.Groups = append(f.Groups, Group{Rows: int(g.NumRows()), First: first.Int64(), Last: last.Int64()})
	}
	c.put(key, f.outline, int64(columnWeight*len(f.columns)*len(f.Groups)))
	return f, nil
}

// bytes returns the bytes of a small file.
func (f *File) bytes(ctx context.Context) ([]byte, error) {
	if f.whole != nil {
		return f.whole, nil
	}
	b, err := f.a.objects.get(ctx, &f.m, dataObject)
	f.whole = b
	return b, err
}

// detached reads a file while it is opened. The outline is cached together with its
// reader, which must not retain the file's bytes there: columns have separate readers.
type detached struct{ io.ReaderAt }

func (d *detached) ReadAt(p []byte, off int64) (int, error) {
	if d.ReaderAt == nil {
		return 0, errOutside
	}
	return d.ReaderAt.ReadAt(p, off)
}

func (f *File) chunk(group int, column string) (*parquet.FileColumnChunk, error) {
	i, ok := f.columns[column]
	if !ok {
		return nil, fmt.Errorf("segment: file of %s has no column %s", f.m.Name, column)
	}
	c, ok := f.pf.RowGroups()[group].ColumnChunks()[i].(*parquet.FileColumnChunk)
	if !ok {
		return nil, fmt.Errorf("segment: file of %s: column %s is not in the file", f.m.Name, column)
	}
	return c, nil
}

// extent is a part of a file in memory.
type extent struct {
	b    []byte
	base int64
}

func (e *extent) ReadAt(p []byte, off int64) (int, error) {
	off -= e.base
	if off < 0 || off > int64(len(e.b)) {
		return 0, errOutside
	}
	n := copy(p, e.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

var errOutside = errors.New("segment: read outside of what was fetched")

// minRead is the minimum size of a read from a file in the bucket.
const minRead = 256 << 10

// remote reads a file in the bucket, at least minRead bytes at a time.
type remote struct {
	f    *File
	ctx  context.Context
	mu   sync.Mutex
	near extent
}

func (r *remote) ReadAt(p []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if off < r.near.base || off+int64(len(p)) > r.near.base+int64(len(r.near.b)) {
		length := min(max(int64(len(p)), minRead), r.f.m.Size-off)
		if length <= 0 {
			return 0, io.EOF
		}
		b, err := r.f.a.objects.part(r.ctx, r.f.m.blobKey(dataObject), off, length)
		if err != nil {
			return 0, err
		}
		r.near = extent{b, off}
	}
	return r.near.ReadAt(p, off)
}

// reader returns a reader of one column of one group, which it fetches completely.
func (f *File) reader(ctx context.Context, group int, column string) (io.ReaderAt, error) {
	if f.m.small() {
		b, err := f.bytes(ctx)
		return &extent{b: b}, err
	}
	meta := f.metadata(group, column)
	from := meta.DataPageOffset
	if meta.DictionaryPageOffset > 0 {
		from = min(from, meta.DictionaryPageOffset)
	}
	b, err := f.a.objects.part(ctx, f.m.blobKey(dataObject), from, meta.TotalCompressedSize)
	if err != nil {
		return nil, err
	}
	return &extent{b, from}, nil
}

// pages calls each with every page of a column.
func (f *File) pages(ctx context.Context, group int, column string, each func(parquet.Page) error) error {
	chunk, err := f.chunk(group, column)
	if err != nil {
		return err
	}
	r, err := f.reader(ctx, group, column)
	if err != nil {
		return err
	}
	pages := chunk.PagesFrom(r)
	defer pages.Close()
	for {
		p, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("segment: column %s of %s: %w", column, f.m.Name, err)
		}
		err = each(p)
		parquet.Release(p)
		if err != nil {
			return err
		}
	}
}

// Ints reads a numeric column.
func (f *File) Ints(ctx context.Context, group int, i Int) ([]int64, error) {
	return f.ints(ctx, group, intColumns[i])
}

func (f *File) ints(ctx context.Context, group int, column string) ([]int64, error) {
	key := columnKey(f.m.Name, group, column)
	if v, ok := f.cache.get(key); ok {
		return v.([]int64), nil
	}
	if _, there := f.columns[column]; !there {
		return make([]int64, f.Groups[group].Rows), nil // the file is older than the column
	}
	out := make([]int64, 0, f.Groups[group].Rows)
	err := f.pages(ctx, group, column, func(p parquet.Page) error {
		data := p.Data()
		out = append(out, data.Int64()...)
		return nil
	})
	if err == nil && len(out) != f.Groups[group].Rows {
		err = fmt.Errorf("segment: column %s of %s has %d rows", column, f.m.Name, len(out))
	}
	if err != nil {
		return nil, err
	}
	f.cache.put(key, out, int64(8*len(out)))
	return out, nil
}

// Strings reads a text column.
func (f *File) Strings(ctx context.Context, group int, d Dim) (*Strings, error) {
	return f.strings(ctx, group, dimColumns[d])
}

func (f *File) strings(ctx context.Context, group int, column string) (*Strings, error) {
	key := columnKey(f.m.Name, group, column)
	if v, ok := f.cache.get(key); ok {
		return v.(*Strings), nil
	}
	if _, there := f.columns[column]; !there {
		return &Strings{Values: []string{""}}, nil // the file is older than the column
	}
	s := &Strings{Codes: make([]uint32, 0, f.Groups[group].Rows)}
	keep := true
	err := f.pages(ctx, group, column, func(p parquet.Page) error {
		if dict := p.Dictionary(); dict != nil {
			if len(s.Values) == 0 {
				s.Values = texts(dict.Page().Data())
			}
			data := p.Data()
			for _, code := range data.Int32() {
				s.Codes = append(s.Codes, uint32(code))
			}
			return nil
		}
		// Without a dictionary nearly all values differ, so duplicates are only found if
		// they are adjacent.
		keep = false
		for _, v := range texts(p.Data()) {
			if n := len(s.Values); n == 0 || s.Values[n-1] != v {
				s.Values = append(s.Values, v)
			}
			s.Codes = append(s.Codes, uint32(len(s.Values)-1))
		}
		return nil
	})
	if err == nil && len(s.Codes) != f.Groups[group].Rows {
		err = fmt.Errorf("segment: column %s of %s has %d rows", column, f.m.Name, len(s.Codes))
	}
	if err != nil {
		return nil, err
	}
	if len(s.Values) == 1 {
		s.Codes = nil
	}
	if keep || len(s.Values) == 1 { // other columns would evict frequently used ones
		f.cache.put(key, s, s.size())
	}
	return s, nil
}

// texts copies the values of a page in one piece.
func texts(data encoding.Values) []string {
	bytes, offsets := data.ByteArray()
	if len(offsets) < 2 {
		return nil
	}
	all, values := string(bytes), make([]string, len(offsets)-1)
	for i := range values {
		values[i] = all[offsets[i]:offsets[i+1]]
	}
	return values
}

// Absent is the code of a row without the metadata key.
const Absent = ^uint32(0)

// The two columns in which Parquet stores metadata.
const (
	metadataKeys   = "metadata.key_value.key"
	metadataValues = "metadata.key_value.value"
)

// Metadata reads the values of one metadata key; rows without it have the code Absent.
func (f *File) Metadata(ctx context.Context, group int, key string) (*Strings, error) {
	cacheKey := columnKey(f.m.Name, group, "metadata."+key)
	if v, ok := f.cache.get(cacheKey); ok {
		return v.(*Strings), nil
	}
	s := &Strings{Codes: make([]uint32, f.Groups[group].Rows)}
	for i := range s.Codes {
		s.Codes[i] = Absent
	}
	// The pairs of a group, in the order in which they are in the two columns.
	var at []int // row of each pair with the key; -1 for other pairs
	row := -1
	err := f.values(ctx, group, metadataKeys, func(v parquet.Value) {
		if v.RepetitionLevel() == 0 {
			row++
		}
		if !v.IsNull() && string(v.ByteArray()) == key {
			at = append(at, row)
		} else {
			at = append(at, -1)
		}
	})
	if err != nil {
		return nil, err
	}
	codes := make(map[string]uint32)
	i := 0
	err = f.values(ctx, group, metadataValues, func(v parquet.Value) {
		if i < len(at) && at[i] >= 0 && at[i] < len(s.Codes) {
			code, ok := codes[string(v.ByteArray())]
			if !ok {
				code = uint32(len(s.Values))
				s.Values = append(s.Values, string(v.ByteArray()))
				codes[s.Values[code]] = code
			}
			s.Codes[at[i]] = code
		}
		i++
	})
	if err != nil {
		return nil, err
	}
	f.cache.put(cacheKey, s, s.size())
	return s, nil
}

// values calls each with every value of a column, including nulls.
func (f *File) values(ctx context.Context, group int, column string, each func(parquet.Value)) error {
	var buf [256]parquet.Value
	return f.pages(ctx, group, column, func(p parquet.Page) error {
		r := p.Values()
		for {
			n, err := r.ReadValues(buf[:])
			for _, v := range buf[:n] {
				each(v)
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return fmt.Errorf("segment: column %s of %s: %w", column, f.m.Name, err)
			}
		}
	})
}

// Records reads the records of some rows of a group; rows are in ascending order. The
// records have no sealed bodies: see Bodies.
func (f *File) Records(ctx context.Context, group int, rows []int) ([]usage.Record, error) {
	const column = "event"
	chunk, err := f.chunk(group, column)
	if err != nil {
		return nil, err
	}
	var r io.ReaderAt = &remote{f: f, ctx: ctx}
	if f.m.small() {
		b, err := f.bytes(ctx)
		if err != nil {
			return nil, err
		}
		r = &extent{b: b}
	}
	if _, err := chunk.OffsetIndexFrom(r); err != nil && !errors.Is(err, parquet.ErrMissingOffsetIndex) {
		return nil, fmt.Errorf("segment: events of %s: %w", f.m.Name, err)
	}
	pages := chunk.PagesFrom(r)
	defer pages.Close()
	records := make([]usage.Record, 0, len(rows))
	for next := 0; next < len(rows); {
		start := int64(rows[next])
		if err := pages.SeekToRow(start); err != nil {
			return nil, fmt.Errorf("segment: events of %s: %w", f.m.Name, err)
		}
		p, err := pages.ReadPage()
		if err != nil {
			return nil, fmt.Errorf("segment: events of %s: %w", f.m.Name, err)
		}
		// All wanted rows of this page.
		data := p.Data()
		bytes, offsets := data.ByteArray()
		for ; next < len(rows) && int64(rows[next])-start < p.NumRows(); next++ {
			i := int64(rows[next]) - start
			rec, err := usage.DecodeEvent(bytes[offsets[i]:offsets[i+1]])
			if err != nil {
				parquet.Release(p)
				return nil, fmt.Errorf("segment: events of %s: %w", f.m.Name, err)
			}
			records = append(records, rec)
		}
		parquet.Release(p)
	}
	return records, nil
}

// bodyRefs reads the locations of a group's bodies.
func (f *File) bodyRefs(ctx context.Context, group int) (packs *Strings, offsets, lengths []int64, err error) {
	if packs, err = f.strings(ctx, group, "body_pack"); err != nil {
		return nil, nil, nil, err
	}
	if offsets, err = f.ints(ctx, group, "body_offset"); err != nil {
		return nil, nil, nil, err
	}
	lengths, err = f.ints(ctx, group, "body_length")
	return packs, offsets, lengths, err
}
