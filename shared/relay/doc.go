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
// Things that live at a provider under ids are kept apart by workspace: see
// relay/kept.
package relay
