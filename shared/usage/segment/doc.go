// Package segment keeps usage records as immutable segments. A segment is a file in Parquet
// with one row for each record: it has a column for everything that is filtered or grouped
// by, and the whole record as its event. Each segment also has a small cube (hour and
// dimensions -> counts, sums, latencies, users) and, if there are any, a pack of sealed
// bodies.
//
// A worker's batch becomes one segment for each organisation and hour. The segment's id is
// a hash of its event ids, so a batch that is delivered again writes what is already there.
// A compactor merges segments: first within an hour, then into hours, then into days. It
// drops records that came twice and swaps the manifest rows in one transaction. Until then
// Overlaps tells readers which rows to leave out. There are no roll-up rows, no row for
// each event and no scans.
//
// Files that a merge wrote have Bloom filters for trace, span, session and users, so that a
// few logs are found among many without reading columns of every group.
//
// These are the rows, all in the usage table. Small objects are in the store, large ones in
// the bucket under the same name:
//
//	ORG#o#USAGE     M#<hour>#<tier>#<id>   manifest; hour is the unix hour of the first record's hour or day
//	ORG#o#SEG#name  data, cube, bodies     objects up to 300 KB; name is the id and a random part
//	SYS#USAGE-DUE   H#<hour>#<org>         an hour with something to merge
//	                D#<hour>#<org>         a day, by its first hour
//	                B#<hour>#<org>         a day, whose bodies have to go one day
//	                R#<hour>#<org>         a day, whose records have to go one day
//	                G#<unix ms>#<id>       objects that a merge left behind
//	                F#look                 how far manifests were looked through for segments that no file has
//	SYS#USAGE-KEPT  O#<org>                an organisation that has days
//	                P#<org>                how far its days are thinned, and who is at it
//	                L#<org>#<day>          a day that got records when it was long over
//
// Workspaces may keep their logs for fewer days than the installation. Readers leave out
// older logs at once (see Cut), and Retain rewrites the segments of such days without them
// (see thin). Several segments and workspaces share a pack of bodies; bodies that must go
// are overwritten with zeros in place.
//
// Other tools can read the files, below segments/data/<org>/<year>/<month>/<day> of the
// bucket. They must take each record once, by its id: batches come twice, and files that a
// merge replaced remain for a while. Segments that are so small that they are in the store
// have no file until a merge makes them large or, with Options.Files, until the hour is
// over; see functions/docs/guides/athena.md.
package segment
