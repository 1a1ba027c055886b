// Package relay is the data plane. Every route of every endpoint family runs the same pipeline:
// authenticate, read the body, resolve the config, count the request; for each target check
// guardrails and the cache, reserve money and call the provider; then send the response, settle,
// and write one record. The administration API does not use this package.
//
// # Pipeline
//
// pipeline.go shows the order. A stage is a function over the call, the frame that holds the
// values of one request (call.go). The first values are types of their own packages; each refers
// to those before it and cannot name those after it:
//
//	admission.Request  the caller, the effective settings and the gateway's headers
//	body.Body          the buffered body, and its demands
//	plan.Plan          the compiled targets of the config, and the position in them
//
//	  for each target of the plan (try):
//	target.Target      address, credential and format of the target
//	guardInput         checks the input before it is translated for the target
//	prepare            builds the upstream body and request
//	caching.Cache       looks up a cached response
//	accounting.Bill    counts against limits and reserves money
//	attempts           calls the provider; each response is judged before anything is sent
//	guardOutput, guardStream
//	                   checks the response before the client gets it
//
//	send               writes the response of the last target
//	settleAndRecord    settles and records, once: writeRecord fills the record from the
//	                   values of the stages; nothing else writes it
//
// The route has its handler (handlers.go): a dry run stops before the request is sent
// (dryrun.go), files and batches of the gateway call no provider (runs.go), model lists may
// not (listing.go); a child request starts after its parent's admission (child.go), and rows of
// batches start at the top (internal_call.go). Pass-through runs the same stages and is sent by
// sendRaw.
//
// Same dialect on both sides: the bytes are forwarded and edited by splicing. Different
// dialects: decode, canonical conversation, encode, with a report of the dropped fields.
//
// # Guardrails
//
// The three stages of guards.go run per target; their state and verdicts are in package
// guardrail, the checks in package guard. Targets without guardrails have no overhead. The input
// of each stage:
//
//	guardInput   of a conversation the canonical request, decoded from To.Body or else
//	             from In; of other JSON and of pass-through the bytes in the client's or
//	             the provider's own format; of a form its buffered fields. To.Body, if
//	             set, replaces the client's body; an error rejects the target, and other
//	             targets of the plan may still respond. Nothing has been counted or
//	             charged.
//	guardStream  a stream of a conversation before its first byte is read: it may replace
//	             the stream's decoder. Nothing is sent to the client before the target's
//	             Hold is over, so that a denial of the beginning still has its own
//	             status; a later one ends the stream with an error event.
//	guardOutput  every response, before another target is tried and before anything but
//	             a stream's beginning is sent: a complete one is in plain, with its
//	             canonical form if it was translated; a passed-through one is resp, in
//	             the provider's format and unread, with a replaceable Body; a stored one
//	             is cached. A denial returned instead is the target's, and the
//	             provider's charge is recorded.
//
// # Packages below
//
//	routes      the declarations of a family, the route of a path, and the paths of the
//	            administration API, which are never forwarded
//	admission, body, plan, target
//	            the first stages of the pipeline; admission also parses the gateway's own
//	            headers and client secrets, body fetches web addresses in requests, target
//	            redacts credentials
//	form        multipart bodies
//	accounting  limits, reservation, usage, cost and settlement of a request
//	guardrail   hooks and verdicts of a request
//	approval    approval requests for tool calls
//	ownership   objects stored at providers, and their owners
//	upstream    request bodies, until the transport has finished with them, and the beta
//	            features that are forwarded
//	response    streams, forwarded or translated, and the usage in responses
//	reused      cached responses
//	record      the response part of the accounting record, and bodies for the log
//	session, realtime
//	            realtime sessions, Live sessions and responses over a WebSocket
//	tools       conversations with tools of MCP servers
//	batch, batchrun
//	            files that the gateway stores, batches that it runs, and their steps
//
// # Media by address
//
// If a provider accepts images and documents only as bytes, a web address in a request is
// fetched before anything is sent: by GET, without any credential, through the guarded
// transport, at most 20 MB each and 50 MB together, in 30 seconds, over at most three redirects,
// each of which is checked like a host that a caller names. The type is read from the bytes. A
// failure is a 400 that names the part.
//
// # Forms
//
// A multipart body of up to 8 MB is buffered completely and can be sent again, so that retries
// and fallbacks work; its fields may be in any order. Of a longer one only the fields before the
// first file are read; the rest is streamed once, and the provider never gets the last bytes of
// a truncated one. The model is written into its field; all other bytes are unchanged. If the
// model follows the file of a longer one, the request must name its provider, and is rejected if
// a list of models or a budget needs the model.
//
// # Objects stored at providers
//
// Objects stored at a provider under ids are isolated by workspace: see package ownership.
package relay
