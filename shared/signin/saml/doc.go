// Package saml signs people in by SAML 2.0: the metadata of identity providers, the
// request that sends a browser there, and the response that comes back, which is
// believed only when everything about it is right.
//
// A document is refused before any parser sees it when it has a document type, an
// entity, CDATA or a comment. What is read of a response is never the document that
// came: it is parsed anew from the very bytes that a signature of the identity
// provider covers. Everything else, such as where the signature stands, how many
// assertions there are and which ids they have, has one shape, and any other is
// refused.
package saml
