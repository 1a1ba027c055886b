// Package admission is the first stage of the pipeline: it finds the caller of a request, the
// settings that it is served under, and what the gateway's headers ask for.
//
// It also creates and opens the client secrets of realtime sessions: short-lived
// credentials for browsers, issued by the gateway. A secret opens sessions with the permissions
// of the API key that created it, with that request's headers and only for its model, and is
// invalid once that key is.
//
// The content of a secret is stored sealed under its hash; any process can open it.
package admission
