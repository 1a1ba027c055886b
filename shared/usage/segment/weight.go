package segment

import "github.com/parquet-go/parquet-go/format"

// metadata is what the file says of a column of a group.
func (f *File) metadata(group int, column string) *format.ColumnMetaData {
	return &f.pf.Metadata().RowGroups[group].Columns[f.columns[column]].MetaData
}

// Weight is about how many bytes the file takes while columns of it are read, beside
// the columns: a small one stands in memory whole.
func (f *File) Weight() int64 {
	if f.m.small() {
		return 2 * f.m.Size // as it stands in the store, and copied from there
	}
	return 0
}

// IntsWeight is about how many bytes it takes to read a column of numbers.
func (f *File) IntsWeight(group int, i Int) int64 {
	return f.fetched(group, intColumns[i]) + 8*int64(f.Groups[group].Rows)
}

// StringsWeight is about how many bytes it takes to read a column of texts.
func (f *File) StringsWeight(group int, d Dim) int64 { return f.textWeight(group, dimColumns[d]) }

// MetadataWeight is about how many bytes it takes to read the values of a metadata key.
func (f *File) MetadataWeight(group int) int64 {
	pairs := f.metadata(group, metadataKeys).NumValues
	return f.textWeight(group, metadataKeys) + f.textWeight(group, metadataValues) + 8*pairs
}

// Bytes that a text takes in memory beside its own: where it is with its place in the
// page, and its code.
const (
	valueWeight = 16 + 16
	codeWeight  = 4
)

func (f *File) textWeight(group int, column string) int64 {
	meta := f.metadata(group, column)
	// A value takes at least the four bytes of its length in the file.
	values := min(meta.NumValues, meta.TotalUncompressedSize/4)
	return f.fetched(group, column) + 2*meta.TotalUncompressedSize + valueWeight*values + codeWeight*int64(f.Groups[group].Rows)
}

// readWeight is what reading a column takes whatever its length: buffers of pages.
const readWeight = 32 << 10

// fetched is how many bytes it takes to get at a column.
func (f *File) fetched(group int, column string) int64 {
	if f.m.small() {
		return readWeight
	}
	return readWeight + f.metadata(group, column).TotalCompressedSize
}

// RecordsWeight is about how many bytes it takes to find records in the file, beside
// the records.
func (f *File) RecordsWeight() int64 { return f.Weight() + stretch + 64<<10 }

// BodiesWeight is about how many bytes it takes to find where the bodies of a record
// are, and to read those that stand in the store with others.
func (f *File) BodiesWeight(group int) int64 {
	sum := f.textWeight(group, "body_pack") + 2*(8*int64(f.Groups[group].Rows)+f.fetched(group, "body_offset"))
	if !f.m.inBucket(bodiesObject) {
		sum += 2 * maxInline
	}
	return sum
}
