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
package relay
