// Package scim is the protocol by which identity providers keep users and groups in step
// (RFC 7643 and 7644): its schemas, its filters and paths, and changes by PATCH, in the
// shapes of the RFCs and in those that providers really send. It works on resources as JSON
// objects, and does not know how they are stored.
package scim
