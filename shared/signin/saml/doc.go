// Package saml signs people in by SAML 2.0: the metadata of identity providers, the request
// that sends a browser there, and the response that comes back, which is believed only if
// everything about it is right.
//
// A document with a document type, an entity, CDATA or a comment is rejected before any parser
// sees it. A response is never read from the document that came: it is parsed again from
// exactly those bytes that a signature of the identity provider covers. Everything else (where
// the signature is, how many assertions there are, which ids they have) has one allowed shape,
// and any other is rejected.
package saml
