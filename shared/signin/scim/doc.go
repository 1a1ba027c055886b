// Package scim is the protocol by which identity providers keep users and groups in
// step (RFC 7643 and 7644): its schemas, its filters and paths, and changes by PATCH, in
// the shapes that the RFCs have and in those that providers really send. It works on
// resources as JSON objects, and knows nothing of who is stored where.
package scim
