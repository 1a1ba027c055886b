package segment

import "github.com/parquet-go/parquet-go/format"

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
