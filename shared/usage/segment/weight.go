package segment

import "github.com/parquet-go/parquet-go/format"

// metadata is what the file says about a column of a group.
func (f *File) metadata(group int, column string) *format.ColumnMetaData {
	return &f.pf.Metadata().RowGroups[group].Columns[f.columns[column]].MetaData
}

// Weight is about how many bytes the file itself takes while its columns are read: a small
// file is in memory as a whole.
func (f *File) Weight() int64 {
	if f.m.small() {
		return 2 * f.m.Size // once as it is in the store, and once copied from there
	}
	return 0
}

// IntsWeight is about how many bytes reading a column of numbers takes.
func (f *File) IntsWeight(group int, i Int) int64 {
	return f.fetched(group, intColumns[i]) + 8*int64(f.Groups[group].Rows)
}

// StringsWeight is about how many bytes reading a column of texts takes.
func (f *File) StringsWeight(group int, d Dim) int64 { return f.textWeight(group, dimColumns[d]) }

// MetadataWeight is about how many bytes reading the values of a metadata key takes.
func (f *File) MetadataWeight(group int) int64 {
	pairs := f.metadata(group, metadataKeys).NumValues
	return f.textWeight(group, metadataKeys) + f.textWeight(group, metadataValues) + 8*pairs
}

// Bytes of memory that a column of texts takes besides the texts: for each value, where it is
// and its place in the page; and for each row, its code.
const (
	valueWeight = 16 + 16
	codeWeight  = 4
)

func (f *File) textWeight(group int, column string) int64 {
	meta := f.metadata(group, column)
	// In the file, a value takes at least the four bytes of its length.
	values := min(meta.NumValues, meta.TotalUncompressedSize/4)
	return f.fetched(group, column) + 2*meta.TotalUncompressedSize + valueWeight*values + codeWeight*int64(f.Groups[group].Rows)
}

// readWeight is what reading a column takes whatever its length: buffers for pages.
const readWeight = 32 << 10

// fetched is about how many bytes fetching a column takes.
func (f *File) fetched(group int, column string) int64 {
	if f.m.small() {
		return readWeight
	}
	return readWeight + f.metadata(group, column).TotalCompressedSize
}

// RecordsWeight is about how many bytes finding records in the file takes, without the
// records.
func (f *File) RecordsWeight() int64 { return f.Weight() + stretch + 64<<10 }

// BodiesWeight is about how many bytes it takes to find where the bodies of a record are,
// and to read them if they are in the store together with others.
func (f *File) BodiesWeight(group int) int64 {
	sum := f.textWeight(group, "body_pack") + 2*(8*int64(f.Groups[group].Rows)+f.fetched(group, "body_offset"))
	if !f.m.inBucket(bodiesObject) {
		sum += 2 * maxInline
	}
	return sum
}
