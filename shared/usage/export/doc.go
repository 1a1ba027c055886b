// Package export writes the logs that a filter chooses into a file.
//
// An export is a run of steps. A step holds the run by a lease, reads pages of logs
// behind the cursor that the run has come to, and puts what they make as parts of one
// upload; after each part it notes cursor, parts and counts. A process that is killed
// costs the part that it was at. Memory is that of one part and one page, however
// many logs there are.
//
//	Runs     what is noted of each run: start, cancel, look      (administration)
//	Worker   does the steps that messages ask for                (worker)
//	lines    one log as a line: JSON, or values with commas
//	columns  Parquet
//
// The end of a Parquet file tells where all its columns are. What it has to tell of a
// part, its index, is kept beside the part as an object of its own until the file is
// whole.
package export
