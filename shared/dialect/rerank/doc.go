// Package rerank holds the one shape in which clients ask for a rerank of
// documents and get it, and the translators to Voyage and Jina.
//
// A request is {model, query, documents, top_n, return_documents, ...}; a
// document is a text or an object with one. A response is {id, object, model,
// results: [{index, relevance_score, document?}], usage}, the best first. The
// documents of a response are the client's own, whatever the provider returns.
package rerank
