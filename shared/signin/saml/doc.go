// Package saml signs users in with SAML 2.0: the metadata of identity providers, the
// authentication request, and strict validation of the response.
//
// A document with a document type, an entity, CDATA or a comment is rejected before parsing. A
// response is never read from the received document: it is parsed again from exactly those
// bytes that a signature of the identity provider covers. Everything else (position of the
// signature, number of assertions, ids) has one allowed structure, and any other is rejected.
package saml
