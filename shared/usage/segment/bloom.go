package segment

import (
	"bytes"
	"context"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/bloom"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// filteredDims are the columns used to find a few records among many. In merged files
// each of them has a Bloom filter per group, in Parquet's format, so that readers skip
// groups without reading the column. Batches have no filters: they are small and are
// merged within the hour.
var filteredDims = [...]Dim{TraceID, SpanID, Session, EndUser, UserID}

// bitsPerValue gives a false positive rate of one percent.
const bitsPerValue = 10

// bloomFilters are the options that add the filters to a file.
var bloomFilters = parquet.BloomFilters(func() (list []parquet.BloomFilterColumn) {
	for _, d := range filteredDims {
		list = append(list, parquet.SplitBlockFilter(bitsPerValue, dimColumns[d]))
	}
	return list
}()...)

// maxFilterHead is an upper bound of the size of a filter's head in a file.
const maxFilterHead = 64

// filterSize returns the maximum size of a column's filter; 0 if it has none.
func (f *File) filterSize(group int, column string) int64 {
	if _, there := f.columns[column]; !there || f.metadata(group, column).BloomFilterOffset == 0 {
		return 0
	}
	return int64(bloom.NumSplitBlocksOf(f.metadata(group, column).NumValues, bitsPerValue)*bloom.BlockSize + maxFilterHead)
}

// MayHaveWeight estimates the memory in bytes that MayHave needs.
func (f *File) MayHaveWeight(group int, d Dim) int64 { return 2 * f.filterSize(group, dimColumns[d]) }

// MayHave reports whether a column of a group may contain one of the values. It returns
// true if that is unknown.
func (f *File) MayHave(ctx context.Context, group int, d Dim, values map[string]struct{}) (bool, error) {
	filter, err := f.filter(ctx, group, dimColumns[d])
	if err != nil || filter == nil {
		return true, err
	}
	for v := range values {
		if filter.Check(bloom.XXH64{}.Sum64([]byte(v))) {
			return true, nil
		}
	}
	return false, nil
}

// filter reads the filter of a column; nil if there is none in a known format.
func (f *File) filter(ctx context.Context, group int, column string) (bloom.SplitBlockFilter, error) {
	most := f.filterSize(group, column)
	if most == 0 {
		return nil, nil
	}
	key := columnKey(f.m.Name, group, "filter of "+column)
	if v, ok := f.cache.get(key); ok {
		return v.(bloom.SplitBlockFilter), nil
	}
	at := f.metadata(group, column).BloomFilterOffset
	raw, err := f.readRange(ctx, at, min(most, f.m.Size-at))
	if err != nil {
		return nil, err
	}
	var head format.BloomFilterHeader
	r := bytes.NewReader(raw)
	protocol := thrift.CompactProtocol{}
	if err := thrift.NewDecoder(protocol.NewReader(r)).Decode(&head); err != nil {
		return nil, fmt.Errorf("segment: filter of %s in %s: %w", column, f.m.Name, err)
	}
	if head.Algorithm.Block == nil || head.Hash.XxHash == nil || head.Compression.Uncompressed == nil {
		return nil, nil // another program wrote it
	}
	bits := raw[len(raw)-r.Len():]
	if head.NumBytes <= 0 || int64(head.NumBytes) > int64(len(bits)) || head.NumBytes%bloom.BlockSize != 0 {
		return nil, fmt.Errorf("segment: filter of %s in %s is truncated", column, f.m.Name)
	}
	filter := bloom.MakeSplitBlockFilter(bytes.Clone(bits[:head.NumBytes])) // a copy, so that the cache does not retain the surrounding bytes
	f.cache.put(key, filter, int64(head.NumBytes))
	return filter, nil
}

// readRange reads a byte range of the file.
func (f *File) readRange(ctx context.Context, at, length int64) ([]byte, error) {
	if !f.m.small() {
		return f.a.objects.part(ctx, f.m.blobKey(dataObject), at, length)
	}
	whole, err := f.bytes(ctx)
	if err != nil {
		return nil, err
	}
	if at < 0 || at+length > int64(len(whole)) {
		return nil, errOutside
	}
	return whole[at : at+length], nil
}

// FilteredDims returns the columns for which MayHave has filters.
func FilteredDims() []Dim { return filteredDims[:] }

// metadata returns the file's metadata of a column of a group.
func (f *File) metadata(group int, column string) *format.ColumnMetaData {
	return &f.pf.Metadata().RowGroups[group].Columns[f.columns[column]].MetaData
}

// Weight estimates the memory in bytes for the file itself while its columns are read: a
// small file is in memory completely.
func (f *File) Weight() int64 {
	if f.m.small() {
		return 2 * f.m.Size // the stored bytes, and a copy
	}
	return 0
}

// IntsWeight estimates the memory in bytes for reading a numeric column.
func (f *File) IntsWeight(group int, i Int) int64 {
	return f.fetchWeight(group, intColumns[i]) + 8*int64(f.Groups[group].Rows)
}

// StringsWeight estimates the memory in bytes for reading a text column.
func (f *File) StringsWeight(group int, d Dim) int64 { return f.textWeight(group, dimColumns[d]) }

// MetadataWeight estimates the memory in bytes for reading the values of a metadata key.
func (f *File) MetadataWeight(group int) int64 {
	pairs := f.metadata(group, metadataKeys).NumValues
	return f.textWeight(group, metadataKeys) + f.textWeight(group, metadataValues) + 8*pairs
}

// Memory in bytes of a text column besides the texts: for each value its location and its
// index entry in the page; for each row its code.
const (
	valueWeight = 16 + 16
	codeWeight  = 4
)

func (f *File) textWeight(group int, column string) int64 {
	meta := f.metadata(group, column)
	// In the file, a value takes at least the four bytes of its length.
	values := min(meta.NumValues, meta.TotalUncompressedSize/4)
	return f.fetchWeight(group, column) + 2*meta.TotalUncompressedSize + valueWeight*values + codeWeight*int64(f.Groups[group].Rows)
}

// readWeight is the fixed memory cost of reading a column: page buffers.
const readWeight = 32 << 10

// fetchWeight estimates the memory in bytes for fetching a column.
func (f *File) fetchWeight(group int, column string) int64 {
	if f.m.small() {
		return readWeight
	}
	return readWeight + f.metadata(group, column).TotalCompressedSize
}

// RecordsWeight estimates the memory in bytes for finding records in the file, without
// the records.
func (f *File) RecordsWeight() int64 { return f.Weight() + minRead + 64<<10 }

// BodiesWeight estimates the memory in bytes for finding the bodies of a record and
// reading them if they share a row of the store.
func (f *File) BodiesWeight(group int) int64 {
	sum := f.textWeight(group, "body_pack") + 2*(8*int64(f.Groups[group].Rows)+f.fetchWeight(group, "body_offset"))
	if !f.m.inBucket(bodiesObject) {
		sum += 2 * maxInline
	}
	return sum
}

// Bodies reads the sealed bodies of the records of one group.
type Bodies struct {
	file            *File
	gone            bool // the bodies are deleted
	packs           *Strings
	offsets, length []int64
}

// Bodies reads the locations of a group's bodies, but not the bodies.
func (f *File) Bodies(ctx context.Context, group int) (b *Bodies, err error) {
	b = &Bodies{file: f, gone: f.a.bodiesExpired(&f.m)}
	if !b.gone {
		b.packs, b.offsets, b.length, err = f.bodyRefs(ctx, group)
	}
	return b, err
}

// Row returns the sealed bodies of one record; nil if it has none or they were deleted.
// If the record has a Blob, its bodies are there.
func (b *Bodies) Row(ctx context.Context, row int) ([]byte, error) {
	if b.gone {
		return nil, nil
	}
	f, ref := b.file, bodyRef{b.packs.At(row), b.offsets[row], b.length[row]}
	switch {
	case ref.length == 0:
		return nil, nil
	case ref.pack != "":
		return f.a.objects.bodies(ctx, ref)
	case f.m.inBucket(bodiesObject):
		return f.a.objects.bodies(ctx, bodyRef{f.m.blobKey(bodiesObject), ref.offset, ref.length})
	}
	pack, err := f.a.objects.get(ctx, &f.m, bodiesObject)
	if err != nil {
		return nil, err
	}
	if ref.offset+ref.length > int64(len(pack)) {
		return nil, fmt.Errorf("segment: bodies of %s are truncated", f.m.Name)
	}
	return pack[ref.offset : ref.offset+ref.length], nil
}
