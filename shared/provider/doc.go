// Package provider is the catalog of model providers: one row each, with its address,
// authentication, credential fields, paths of operations and the quirks that a dialect
// must respect. A row and a credential make a Target; a Target builds the URL and the
// headers of an upstream request.
//
// The package also contains the stored forms of integrations and saved providers.
//
// Adding an OpenAI-compatible provider is adding one row to a table. A provider with a
// dialect that the gateway does not translate still has a row, so that pass-through
// reaches it.
//
// This package must not contain body formats (dialects) or send requests (relay, egress).
package provider
