// Package ownership provides tenant isolation for objects stored at providers: it finds their
// ids in paths, bodies and responses, and records which workspace owns them.
//
// Files, batches, jobs, responses, assistants, threads, vector stores and similar objects are
// stored at the provider under ids, and every holder of the credential can access all of them. A
// credential of a workspace's own integration, or one from the caller or a config, is assumed to
// be exclusive: nothing is checked. For a credential of the organization the gateway isolates
// its workspaces:
//
//   - Objects that a workspace creates are recorded, in a row below the organization and the
//     integration, before the response reveals their ids: created objects, objects in the events
//     of a stream, the files that a batch or job creates.
//   - An id of another workspace, in a path, in a cursor or at any depth of a JSON body, gets a
//     404 before the credential is opened. So does an id that was not created through the
//     gateway, while several workspaces may use the integration: existing objects must be used
//     through an integration of a single workspace.
//   - Lists contain the workspace's own objects only. A list with a format that cannot be
//     filtered is rejected (403).
//   - An ambiguous path (dots, escaped slashes, semicolons), and a body that is not JSON or a
//     form, is rejected on paths that name a collection. Tuned models are deleted by the
//     workspace that tuned them.
//
// A row expires 400 days after its last use. The rules apply to pass-through and to the
// gateway's own routes alike, because they depend on the path and not on the route.
//
// Items of responses and conversations are recorded as well, if others use the credential. An
// item of a request that has an id but no payload is a reference: a foreign one gets a 404. A
// complete item with a foreign id is sent under another id.
//
// An integration with a list of models rejects batches: their rows may name any model.
//
// A finished batch that reports usage is charged once, with the first request that sees it
// finished, at the price of batches. So is a run of a thread, at the usual price. Reads and
// changes of stored objects are not charged again, and need no price for a budget.
//
// Signed reasoning that precedes tool calls is stored for clients with a format that has no
// place for it (Memory).
package ownership
