// Package kept reads what paths, bodies and answers say of things that providers
// keep, and knows whose they are.
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
// the gateway's own routes, because it looks at the path and not at the route.
//
// Items of responses and conversations are noted as well, where others use the
// credential. An item of a request that has an id but no payload of its own is a
// reference: a foreign one is answered with 404. An item that is sent whole under a
// foreign id goes out under another id.
//
// An integration with a list of models does not take
// batches: their rows may name any model.
//
// A finished batch that reports usage is booked once, with the request that sees
// it finished first, at the price of batches. So is a run of a thread, at the
// usual price. What is read or changed where the provider keeps it is not booked
// again, and asks no budget for a price.
//
// Signed reasoning that precedes tool calls is kept for clients whose format has no place for
// it (reasoning.go).
package kept
