// Package provider is the catalogue of model providers: one row for each, with its address,
// its way to authenticate, the fields of its credentials, the paths of its operations and
// the quirks that a dialect must respect. A row and a credential make a Target; a Target
// makes the URL and the headers of an upstream request.
//
// The package also holds the stored forms of integrations and saved providers.
//
// Adding an OpenAI-compatible provider is adding one row to a table. A
// provider whose dialect the gateway does not translate still has its row, so
// that pass-through reaches it.
//
// What must never come in: the shape of bodies (dialects) and the sending of
// requests (relay, egress).
package provider
