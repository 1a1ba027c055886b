// Package resource is the one layout of a stored admin resource: its record,
// its versions, its slug, its row in a list, who uses it, when something is due
// for it, and the generation of its organization. Administration writes through
// Change, the data plane reads through a Loader.
//
// Rows of the control table, per scope (ORG#o or ORG#o#WS#w):
//
//	<KIND>#id               the record
//	<KIND>#id#v000000001    a version of its content
//	SLUG#<KIND>#slug        the id that holds the slug
//	USE#<KIND>#id#<user>    who uses it, so that it cannot be deleted
//	LIST#<KIND>#<ulid>      what a list filters by, in the order of creation
//	ARCHIVED#<KIND>#<ulid>  the same of archived records, so that lists of live ones stay bounded
//	COUNT#<KIND>            how many live records there are
//
// and across scopes ORG#o#GEN (the generation), SYS#OUTBOX#0-15 (messages sent
// after the commit) and SYS#DUE#<kind>#<hour> (work for a later hour).
//
// A change is one transaction over all of these. The generation grows with it, and a
// process drops what it has cached under another generation.
//
// What must never come in: the meaning of a body, HTTP, or an unsealed secret.
package resource
