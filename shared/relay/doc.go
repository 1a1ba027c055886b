// Package relay is the data plane. Every route of every endpoint family runs the same
// pipeline: authenticate, read the body, resolve the config, count the request; for each
// target check guardrails and the cache, reserve money and call the provider; then send the
// response, settle, and write one record. The administration API does not use this package.
//
// # Pipeline
//
// pipeline.go shows the order. A stage is a function over the call, the frame that holds the
// values of one request (call.go). The first values are types of their own packages; each
// refers to those before it and cannot name those after it:
//
//	admitted.Request   the caller, the effective settings and the gateway's headers
//	inbound.Body       the body that is held, and what it asks for
//	plan.Plan          the compiled targets of the config, and the position in them
//
//	  for each target of the plan (try):
//	chosen.Target      address, credential and format of the target
//	guardInput         checks the input before it is translated for the target
//	prepare            builds the upstream body and request
//	reused.Cache       looks up a cached response
//	accounting.Bill          counts against limits and reserves money
//	attempts           calls the provider; each answer is judged before anything is sent
//	guardOutput, guardStream
//	                   checks the response before the client gets it
//
//	send               writes the response of the last target
//	keepBooks          settles and records, once: writeBooks fills the record from what
//	                   the stages learned; nothing else writes it
//
// The route carries its handler (handlers.go): a dry run stops before the request is sent
// (rehearse.go), files and batches of the gateway call no provider (runs.go), model lists may not
// (listing.go); a child request starts after its parent's admission (child.go), and rows of batches
// start at the top (behalf.go). Pass-through runs the same stages and is sent by sendRaw.
//
// Same dialect on both sides: the bytes are forwarded and edited by splicing. Different
// dialects: decode, canonical conversation, encode, with a report of what was lost.
//
// # Guardrails
//
// The three stages of guards.go run per target; their state and verdicts are in package
// guardrail, the checks in package guard. Targets without guardrails have no overhead. What
// each stage sees:
//
//	guardInput   of a conversation the canonical request, by Decode of To.Body or else
//	             of In; of other JSON and of pass-through the bytes in the client's or
//	             the provider's own shape; of a form its fields that are held. A body
//	             in To.Body goes in place of the client's; an error is the target's
//	             refusal, which other targets of the plan may still answer for. Nothing
//	             has been counted or paid.
//	guardStream  a stream of a conversation before its first byte is read: stream hands
//	             on what the client gets piece by piece, and the deltas of both ways of
//	             it, which response puts together for the cache likewise. Nothing goes to
//	             the client before the target's Hold is over, so that a refusal of the
//	             beginning still has a status of its own; a later one ends the stream
//	             with an error event.
//	guardOutput  every answer, before another target is tried and before anything but
//	             a stream's beginning is sent: one that is whole stands in plain with
//	             its canonical form where it was translated; one that is passed through
//	             is resp, in the provider's shape and unread, whose Body may be
//	             replaced; one that was kept is cached. A refusal returned in its place
//	             is the target's, and what the provider was paid stands in the books.
//
// # Packages below
//
//	asked       what the gateway's own headers ask for
//	routes      what a family declares, and the route of a path
//	reserved    paths of the administration, never passed on
//	admission, body, plan, target
//	            the first stages of the pipeline
//	betas       switches of a provider's interface that clients ask for
//	form        multipart bodies
//	kept        what providers keep under ids, and whose it is
//	media       what is named by address, fetched
//	outgoing    the bytes that are sent, until the transport is done with them
//	response    streams, forwarded or translated
//	tail        the usage at the end of what is passed through
//	came        what came of an answer that is not whole, and estimates of usage
//	mask        secrets by their value
//	accounting  limits, reservation, usage, cost and settlement of a request
//	reused      answers that were kept
//	stars       credentials of the target, hidden by their value
//	record      what the accounting record states of the response, and bodies for the log
//	modellist   lists of models
//	rehearsal   what a dry run says and is told
//	heldfiles, managed, batchrun
//	            files that the gateway holds, batches that it runs, and their steps
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
// Things that live at a provider under ids are kept apart by workspace: see
// relay/kept.
package relay
