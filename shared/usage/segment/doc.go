// Package segment keeps usage records as immutable segments: files in Parquet
// (one row per record: a column for whatever is filtered or grouped by, and the
// whole record as its event) each with a small cube (hour and dimensions ->
// counts, sums, latencies, users) and, when there are any, a pack of sealed
// bodies.
//
// A worker's batch becomes one segment per organisation and hour. Its id is a
// hash of its event ids, so a batch delivered again writes what is there. A
// compactor merges segments, minute by minute, then hours, then days; it drops
// records that came twice and swaps the manifest rows in one transaction. Until
// then Overlaps tells readers which rows to leave out. There are no roll-up
// rows, no row per event and no scans.
//
// Files that a merge wrote have Bloom filters of trace, span, session and users, so
// that a few logs are found among many without reading columns of every group.
//
// Rows, all in the usage table (small objects stand in the store, large ones in
// the bucket under the same name):
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
// Workspaces may keep their logs for fewer days than the installation: readers leave
// out what is older at once (see Cut), and Retain writes the segments of such days
// without it (see thin). Packs of bodies are shared by segments and workspaces; what has
// to go of them is blanked where it is.
//
// Other tools can read the files, under segments/data/<org>/<year>/<month>/<day> of the
// bucket. They take each record once, by its id: batches come twice, and files that a
// merge left behind stay for a while. Segments so small that they stand in the store are
// not among the files until a merge makes them large, or, with Options.Files, until the
// hour is over; see shared/usage/athena/README.md.
package segment
