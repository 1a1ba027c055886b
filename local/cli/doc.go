// Package cli holds the verbs of the command line: one file per verb. A verb is a client of
// the public API or works on local files; it never starts a gateway. The package links no
// server, so that each verb starts fast; what needs the stores (serve, recover) is passed
// in by the command.
package cli
