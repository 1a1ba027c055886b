// Package relay is the data plane's one walk. Every route of every family takes
// it: identify, read and walk the body, resolve the route, count the request,
// per target reserve money and call the provider, send the answer back, settle,
// write one record.
//
// Data travels one way: a call is filled from the request, each stage gets what
// the earlier ones learned and nothing later calls back. The administration API
// does not meet this package.
//
// Same dialect on both sides: the bytes are forwarded and edited by splicing.
// Different dialects: decode, canonical conversation, encode, with a report of
// what was not carried.
//
// # Media by address
//
// Where a provider takes images and documents as bytes only, what a client names
// by a web address is fetched before anything is sent: by GET, without any
// credential, through the guarded transport, at most 20 MB each and 50 MB
// together, in 30 seconds, over at most three redirects each of which is checked
// like a host that a caller names. Its type is read from its bytes. A failure is
// a 400 that names the part.
//
// # Forms
//
// A multipart body of up to 8 MB is read whole and can be sent again, so that
// retries and fallbacks work; its fields may stand in any order. Of a longer one
// only the fields before the first file are read; the rest is streamed through
// once, and the provider never gets the last bytes of one that is cut short. The
// model is written into its field; all other bytes stay as they are. When the
// model stands behind the file of a longer one, the request must name its
// provider, and is refused where a list of models or a budget needs the model.
//
// # What providers keep
//
// Files, batches, jobs, responses, assistants, threads, vector stores and the
// like live at the provider under ids, and everybody who holds the credential
// reaches all of them. A credential of a workspace's own integration, or one that
// the caller or a config brings, is taken to be theirs alone: nothing is checked.
// For a credential of the organisation the gateway keeps the walls between its
// workspaces:
//
//   - What a workspace makes is noted, in a row below the organisation and the
//     integration, before the answer tells its id: what is created, what a stream
//     tells to be created, the files that a batch or job makes.
//   - An id of another workspace, in a path, in a cursor or at any depth of a JSON
//     body, is answered with 404 before the credential is opened. So is an id that
//     nobody made through the gateway, while several workspaces may use the
//     integration: things that were there before must be used through an
//     integration that one workspace has alone.
//   - Lists hold the workspace's own things only. A list of a form that cannot be
//     divided is refused (403).
//   - A path that can be read in more ways than one (dots, escaped slashes,
//     semicolons), and a body that is not JSON or a form, is refused on paths that
//     name a collection. Tuned models are deleted by the workspace that tuned them.
//
// A row lives for 400 days from its last use. This holds on pass-through as on
// the gateway's own routes, because it looks at the path and not at the route. An
// item_reference inside a response's input is refused (403) where several
// workspaces share the credential: responses do not tell whose items they are. An
// integration with a list of models does not take
// batches: their rows may name any model.
//
// A finished batch that reports usage is booked once, with the request that sees
// it finished first, at the price of batches. So is a run of a thread, at the
// usual price. What is read or changed where the provider keeps it is not booked
// again, and asks no budget for a price.
package relay
