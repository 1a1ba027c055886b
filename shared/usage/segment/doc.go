// Package segment stores usage records as immutable segments. A segment is a Parquet file
// with one row per record: a column for each filter and group dimension, and the whole
// record as its event. Each segment also has a small cube (hour and dimensions -> counts,
// sums, latencies, users) and, if there are any, a pack of sealed bodies.
//
// A worker's batch becomes one segment per organization and hour. The segment's id is a
// hash of its event ids, so a batch that is delivered again writes the same segment. A
// compactor merges segments: first within an hour, then into hours, then into days. It
// drops duplicate records and swaps the manifest rows in one transaction. Until then
// Overlaps tells readers which rows to skip. There are no roll-up rows, no row per event
// and no table scans.
//
// Merged files have Bloom filters for trace, span, session and users, so that a few logs
// are found without reading columns of every group.
//
// The rows are all in the usage table. Small objects are in the store, large ones in the
// bucket under the same name:
//
//	ORG#o#USAGE     M#<hour>#<tier>#<id>   manifest; hour is the unix hour of the first record's hour or day
//	ORG#o#SEG#name  data, cube, bodies     objects up to 300 KB; name is the id and a random part
//	SYS#USAGE-DUE   H#<hour>#<org>         an hour to merge
//	                D#<hour>#<org>         a day to merge, by its first hour
//	                B#<hour>#<org>         a day with bodies subject to retention
//	                R#<hour>#<org>         a day with records subject to retention
//	                G#<unix ms>#<id>       objects of merged segments, to delete
//	                F#look                 progress of the search for segments without a file
//	SYS#USAGE-KEPT  O#<org>                an organization that has days
//	                P#<org>                progress and lease of thinning its days
//	                L#<org>#<day>          a day that received records long after its end
//
// Workspaces may have a shorter log retention than the installation. Readers hide older
// logs immediately (see Cut), and Retain rewrites the segments of such days without them
// (see thin). Several segments and workspaces share a pack of bodies; deleted bodies are
// overwritten with zeros in place.
//
// Other tools can read the files below segments/data/<org>/<year>/<month>/<day> of the
// bucket. They must deduplicate records by id: batches are delivered at least once, and
// files replaced by a merge remain for a while. Segments small enough for the store have
// no file until a merge makes them large or, with Options.Files, until the hour is over;
// see functions/docs/guides/athena.md.
package segment
