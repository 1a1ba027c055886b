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
